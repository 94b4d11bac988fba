// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// newFaultScenario is a spread of two pods that run and are not marked yet, and of one that finds no node in its subset.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	e := newEngine(t)
	s := &kruise.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "ws", Generation: 1}}
	s.Spec.TargetReference = kruise.TargetReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}
	s.Spec.ScheduleStrategy = kruise.WorkloadSpreadScheduleStrategy{
		Type: kruise.AdaptiveWorkloadSpreadScheduleStrategyType, Adaptive: &kruise.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: ptr.To[int32](30)},
	}
	s.Spec.Subsets = []kruise.WorkloadSpreadSubset{
		{Name: "a", MaxReplicas: ptr.To(intstr.FromInt(2)), RequiredNodeSelector: zone("a"), Patch: runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"subset":"a"}}}`)}},
		{Name: "b", RequiredNodeSelector: zone("b")},
	}
	set := &kruise.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}}
	set.Spec.Replicas = ptr.To[int32](3)
	objects := []client.Object{s, set}
	for i, node := range []string{"node-a", "node-b", ""} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprint("web-", i), Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web", UID: "web", Controller: ptr.To(true)}},
		}}
		pod.Spec = corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "nginx"}}}
		pod.Status.Phase = corev1.PodRunning
		if node == "" {
			pod.Annotations = map[string]string{kruise.MatchedWorkloadSpreadKey: `{"name":"web","subset":"a"}`}
			pod.Status.Phase = corev1.PodPending
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)),
			}}
		}
		objects = append(objects, pod)
	}
	for _, name := range []string{"a", "b"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + name, Labels: map[string]string{"topology.kubernetes.io/zone": name}}})
	}
	return faultinjection.Scenario{
		Objects: objects,
		Build:   func(b *fake.ClientBuilder) { b.WithIndex(&corev1.Pod{}, rollout.OwnerIndex, rollout.OwnerUID) },
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			targets := spread.NewTargets(env.Client, env.Client, scale.NewFinder(env.Client, nil), "kruise-system", env.Clock)
			book := spread.NewRecorder(env.Client, env.Client, e, targets, spread.ParseVersions("deployment,replicaset"), spread.WithClock(env.Clock), spread.WithPace(0))
			return New(reconcile.Deps{Client: env.Client, Events: env.Events, Engine: e, Now: env.Clock}, targets, book)
		},
		Requests: faultinjection.RequestFor(s),
		Watches: map[string]faultinjection.Changes{
			"WorkloadSpread": faultinjection.ChangesOfSpec, "CloneSet": faultinjection.ChangesOfSpec, "Node": faultinjection.NoChanges,
		},
		Quiet: 30 * time.Minute,
		Delay: 6 * time.Minute,
	}
}

func TestNoFailedCallLeavesAPodOutOfItsSpread(t *testing.T) {
	newFaultScenario(t).Run(t)
}

// A pod that cannot be written keeps no other from its mark, and the status from no count; an event names it until it is marked.
func TestAPodThatCannotBeMarkedKeepsNoOther(t *testing.T) {
	subsetOf := func(c *faultinjection.Cluster, name string) string {
		pod := &corev1.Pod{}
		c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: "shop", Name: name}, pod))
		if m := spread.MarkOf(pod); m != nil {
			return m.Subset
		}
		return ""
	}
	describe := func(c *faultinjection.Cluster) string {
		s := &kruise.WorkloadSpread{}
		c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, s))
		out := fmt.Sprintf("web-0 in %q, web-1 in %q", subsetOf(c, "web-0"), subsetOf(c, "web-1"))
		for _, p := range s.Status.SubsetStatuses {
			out += fmt.Sprintf(", %s=%d/%d", p.Name, p.Replicas, p.MissingReplicas)
		}
		return out
	}
	newFaultScenario(t).RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Kind == "Pod" && c.Key.Name == "web-0" },
		Tells:  "marking pod web-0: ",
		Resolve: func(c *faultinjection.Cluster) {
			if got, want := describe(c), `web-0 in "", web-1 in "b", a=1/1, b=1/-1`; got != want {
				t.Errorf("while it waits: %s, want %s", got, want)
			}
		},
		Reaches: func(c *faultinjection.Cluster) string {
			if got, want := describe(c), `web-0 in "a", web-1 in "b", a=1/1, b=1/-1`; got != want {
				return fmt.Sprintf("%s, want %s", got, want)
			}
			return ""
		},
	})
}

func TestAWorkloadSpreadTellsThatItsPodsCannotBeMarked(t *testing.T) {
	newFaultScenario(t).RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Kind == "Pod" },
		Tells:  "an admission webhook refuses it",
		Reaches: func(c *faultinjection.Cluster) string {
			s := &kruise.WorkloadSpread{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, s))
			if len(s.Status.SubsetStatuses) != 2 {
				return fmt.Sprintf("the subsets have no counts: %+v", s.Status)
			}
			return ""
		},
	})
}
