// SPDX-License-Identifier: Apache-2.0

package nodepodprobe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/test/faultinjection"
	"github.com/regatta-sh/regatta/test/rules"
)

func TestNoFailedCallLeavesAPodWithoutItsMarks(t *testing.T) {
	newFaultScenario(t).Run(t)
}

func TestAPodTellsThatItsMarksCannotBeWrittenWhileItLasts(t *testing.T) {
	newFaultScenario(t).RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Kind == "Pod" },
		Tells:  "an admission webhook refuses it",
		Reaches: func(c *faultinjection.Cluster) string {
			pods := &corev1.PodList{}
			c.Must(c.Client.List(c.Context(), pods))
			for i := range pods.Items {
				if pods.Items[i].Labels["idle"] != "true" {
					return "pod " + pods.Items[i].Name + " has no mark"
				}
			}
			return ""
		},
	})
}

// newFaultScenario is a marker with two pods of one node whose probes succeed.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	e := rules.Engine(t, "")
	marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "m"}}
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	marker.Spec.Probes = []v1alpha1.PodContainerProbe{{
		Name: "idle", ContainerName: "main", PodConditionType: "game.io/idle",
		MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"idle": "true"}}},
	}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1_700_000_000, 0)}}
	objects := []client.Object{marker, node}
	for _, name := range []string{"a", "b"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
		pod.Spec = corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main", Image: "a"}}}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}}
		objects = append(objects, pod)
	}
	return faultinjection.Scenario{
		Objects: objects,
		Build:   func(b *fake.ClientBuilder) { b.WithIndex(&corev1.Pod{}, nodes.Index, nodes.IndexValue) },
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock})
		},
		Requests: []reconcile.Request{{NamespacedName: client.ObjectKey{Name: "n1"}}},
		Others:   succeedProbes,
	}
}

// succeedProbes is a node agent whose probes succeed.
func succeedProbes(c *faultinjection.Cluster) {
	list := &v1alpha1.NodePodProbeList{}
	c.Must(c.Client.List(c.Context(), list))
	for i := range list.Items {
		o := &list.Items[i]
		if len(o.Status.PodProbeStatuses) == len(o.Spec.PodProbes) {
			continue
		}
		before := o.DeepCopy()
		o.Status.PodProbeStatuses = nil
		for _, pod := range o.Spec.PodProbes {
			status := v1alpha1.PodProbeStatus{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
			for _, probe := range pod.Probes {
				status.ProbeStates = append(status.ProbeStates, v1alpha1.ContainerProbeState{Name: probe.Name, State: v1alpha1.ProbeSucceeded, LastTransitionTime: ptr.To(metav1.NewTime(c.Now))})
			}
			o.Status.PodProbeStatuses = append(o.Status.PodProbeStatuses, status)
		}
		c.PatchStatus(o, before)
	}
}
