// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	_ "github.com/regatta-sh/regatta/test/proptest"
	"github.com/regatta-sh/regatta/test/rules"
)

// guestKind is a cluster-scoped kind of which pods of many namespaces are guests.
type guestKind struct{ plainKind }

func (*guestKind) FilterPods(_ context.Context, _ *Round, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	return pods, nil
}
func (*guestKind) ResolvePodCounts(client.Object, *Spec, []*corev1.Pod) {}
func (*guestKind) MovableFilter(*Round, *Facts) func(*facts.Pod) bool   { return nil }
func (*guestKind) IsAvailable(_ client.Object, p *facts.Pod) bool       { return p.Ready }

// guests is a round about old pods of a cluster-scoped workload.
func guests(t *testing.T, e *engine.Engine, strategy points.Strategy, namespaces map[string]map[string]string, pods []*corev1.Pod) (*Round, *Facts) {
	t.Helper()
	kind := &guestKind{}
	known := fakeclient.NewClientBuilder(apiserver.Scheme(t))
	for name, labels := range namespaces {
		known = known.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	c := New(kind, reconcile.Deps{Client: known.Build(), Engine: e})
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "u"}}
	subject := decision.Subject{Kind: "SidecarSet", Name: "logs", UID: "u"}
	f := &Facts{
		Spec: Spec{Replicas: len(pods), Strategy: strategy}, Workload: set, Now: time.Unix(1_000_000, 0), Policies: e.ActiveSnapshot().RevisionFor(subject), kind: kind,
		Subject: subject, Templates: &PodTemplates{History: revision.History{Current: revisionOf("web-old"), Update: revisionOf("web-new")}},
	}
	r := &Round{c: c, Workload: set, Now: f.Now, memory: c.memoryOf(set)}
	if err := r.readNamespaces(t.Context(), pods); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(pods, c.comparePods)
	return r, r.completeFacts(f, pods)
}

func guest(namespace, name, uid string, ready bool, labels map[string]string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid), Labels: map[string]string{RevisionLabel: "web-old"}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(time.Unix(999_000, 0)),
		}}},
	}
	if ready {
		p.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	for k, v := range labels {
		p.Labels[k] = v
	}
	return p
}

// Names have no say in what is moved: pods that have one name in several namespaces are moved as
// those are that have names of their own, by whatever rules know of them, and are told the same.
func TestNamesOfPodsChangeNoDecision(t *testing.T) {
	e := rules.Engine(t, `package extend.rollout.x

hold contains {"reason": "Pod", "message": "m", "pod": pod.name, "namespace": pod.namespace} if {
	some pod in input.pods
	pod.labels.held == "true"
}

hold contains {"reason": "Namespace", "message": "m", "pod": pod.name, "namespace": pod.namespace} if {
	some pod in input.pods
	pod.namespaceLabels.held == "true"
}

hold contains {"reason": "Plan", "message": "m", "namespace": "n2"} if input.update > 4

rank := {pod.namespacedName: place | some pod in input.pods; place := count(pod.labels.place)}
`)
	moved, held := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		strategy := points.Strategy{Type: "RollingUpdate", Policy: "ReCreate", MaxUnavailable: rapid.IntRange(0, 6).Draw(rt, "maxUnavailable"), Partition: rapid.IntRange(0, 2).Draw(rt, "partition")}
		namespaces := map[string]map[string]string{"n0": {}, "n1": {"held": fmt.Sprint(rapid.Bool().Draw(rt, "n1 is held"))}, "n2": {}}
		var pods []*corev1.Pod
		for _, name := range []string{"web-0", "web-1", "web-2"} {
			for namespace := range 3 {
				if !rapid.Bool().Draw(rt, "there") {
					continue
				}
				labels := map[string]string{"held": fmt.Sprint(rapid.IntRange(0, 4).Draw(rt, "held") == 0), "place": rapid.StringMatching("x{0,2}").Draw(rt, "place")}
				if rapid.IntRange(0, 4).Draw(rt, "prepares") == 0 {
					labels["lifecycle.apps.kruise.io/state"] = "PreparingUpdate"
				}
				pods = append(pods, guest(fmt.Sprint("n", namespace), name, fmt.Sprint("u", len(pods)), rapid.IntRange(0, 3).Draw(rt, "ready") > 0, labels))
			}
		}
		decide := func(rename func(*corev1.Pod)) (out []string) {
			all := make([]*corev1.Pod, len(pods))
			for i := range pods {
				all[i] = pods[i].DeepCopy()
				rename(all[i])
			}
			r, f := guests(t, e, strategy, namespaces, all)
			a := decided(t, e, r, f)
			for _, m := range a.res.Take {
				moved++
				out = append(out, "takes "+string(m.Pod.UID))
			}
			for _, p := range f.Pods {
				why, ok := a.ExplainPod(p.Namespace, p.Name)
				if !ok || why.Subject.UID != string(p.UID) {
					rt.Fatalf("of pod %s there is told %+v", p.UID, why)
				}
				if why.Reason == "Pod" || why.Reason == "Namespace" || why.Reason == "Plan" {
					held++
				}
				out = append(out, fmt.Sprint(p.UID, " ", why.Verdict, " ", why.Reason))
			}
			return out
		}
		same := decide(func(*corev1.Pod) {})
		apart := decide(func(p *corev1.Pod) { p.Name += "-" + p.Namespace })
		if !slices.Equal(same, apart) {
			rt.Fatalf("with names in common\n%s\nand with names of their own\n%s", strings.Join(same, "\n"), strings.Join(apart, "\n"))
		}
	})
	if moved == 0 || held == 0 {
		t.Errorf("%d were moved and %d held: the property shows nothing", moved, held)
	}
}

// Whether a Service selects a pod is looked up in the namespace of the pod.
func TestServicesAreThoseOfTheNamespaceOfEachPod(t *testing.T) {
	e := rules.Engine(t, "")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}}
	labels := map[string]string{"app": "web"}
	r, f := guests(t, e, points.Strategy{}, nil, []*corev1.Pod{guest("bank", "web-0", "a", true, labels), guest("shop", "web-0", "b", true, labels)})
	r.c.Client, r.c.services = fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(service).Build(), true
	c := &changeDecisions{r: r, f: f}
	for _, want := range []struct {
		pod      int
		unserved bool
	}{{0, true}, {1, false}, {0, true}} {
		if got, err := c.isUnserved(t.Context(), f.Pods[want.pod].Pod); err != nil || got != want.unserved {
			t.Errorf("pod %s: no Service selects it: %v, %v", f.Pods[want.pod].Key(), got, err)
		}
	}
}

// Pods that a workload does not count among its own are distinguished by namespace as well.
func TestOtherPodsOfOneNameAreToldApart(t *testing.T) {
	const looks = `package extend.rollout.x

hold contains {"reason": "Gold", "message": "m", "pod": pod.name, "namespace": pod.namespace} if {
	some pod in input.pods
	pod.namespaceLabels.tier == "gold"
}
`
	e := rules.Engine(t, looks)
	pods := []*corev1.Pod{guest("bank", "web-0", "a", true, nil), guest("play", "web-0", "b", true, nil), guest("shop", "web-0", "c", true, nil)}
	r, f := guests(t, e, points.Strategy{}, map[string]map[string]string{"bank": {"tier": "gold"}, "shop": {}}, pods)
	a := r.MayDisrupt(t.Context(), f, pods)
	if len(a.Allowed) != 1 || a.Allowed[0].UID != "c" {
		t.Errorf("%d pods may be disrupted", len(a.Allowed))
	}
	if a.Held["a"].Reason != "Gold" || a.Held["a"].Namespace != "bank" || a.Held["b"].Reason != namespaces.UnknownReason || a.TopHold().Namespace != "bank" {
		t.Errorf("held are %+v", a.Held)
	}
}
