// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/openkruise"
)

// templates are the four, each of the same pods.
func templates() map[string]func(*kruise.UnitedDeployment) {
	return map[string]func(*kruise.UnitedDeployment){
		"CloneSet": func(*kruise.UnitedDeployment) {},
		"Deployment": func(d *kruise.UnitedDeployment) {
			d.Spec.Template = kruise.SubsetTemplate{DeploymentTemplate: &kruise.DeploymentTemplateSpec{Spec: appsv1.DeploymentSpec{Template: pods("nginx:1")}}}
		},
		"StatefulSet": func(d *kruise.UnitedDeployment) {
			d.Spec.Template = kruise.SubsetTemplate{StatefulSetTemplate: &kruise.StatefulSetTemplateSpec{Spec: appsv1.StatefulSetSpec{Template: pods("nginx:1")}}}
		},
		"Advanced StatefulSet": func(d *kruise.UnitedDeployment) {
			d.Spec.Template = kruise.SubsetTemplate{AdvancedStatefulSetTemplate: &kruise.AdvancedStatefulSetTemplateSpec{Spec: kruise.StatefulSetSpec{Template: pods("nginx:1")}}}
		},
	}
}

func image(d *kruise.UnitedDeployment, image string) {
	k, _ := kindOf(&d.Spec.Template)
	k.pods(&d.Spec.Template).Spec.Containers[0].Image = image
}

// Whatever the template is, each subset gets a workload of its own, and follows changes.
func TestEachSubsetHasAWorkload(t *testing.T) {
	for name, template := range templates() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(d *kruise.UnitedDeployment) {
				template(d)
				d.Spec.Topology.Subsets[0].Replicas = ptr.To(intstr.FromString("45%"))
				d.Spec.Topology.Subsets[1].Tolerations = []corev1.Toleration{{Key: "zone", Operator: corev1.TolerationOpExists}}
				d.Spec.Topology.Subsets[1].Patch = runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"where":"b"}},"spec":{"containers":[{"name":"main","image":"nginx:b"}]}}`)}
			})
			w.reconcile()
			if got := w.counts(); got != "a=5 b=2 c=3" { // 45% of 10 is 4.5
				t.Fatalf("the subsets have %s", got)
			}
			b := w.child("b")
			revision := w.get().Status.UpdatedRevision
			if b.GetLabels()[kruise.SubsetNameKey] != "b" || b.GetLabels()[kruise.ControllerRevisionHashKey] != revision || !strings.HasPrefix(b.GetName(), "web-b-") ||
				b.GetAnnotations()[kruise.SubsetPatchKey] == "" || b.selector.MatchLabels[kruise.SubsetNameKey] != "b" || b.selector.MatchLabels["app"] != "web" {
				t.Errorf("the child is %s %v %v, selector %v", b.GetName(), b.GetLabels(), b.GetAnnotations(), b.selector)
			}
			pod := templateOf(b)
			terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			if len(terms) != 1 || terms[0].MatchExpressions[0].Values[0] != "b" || len(pod.Spec.Tolerations) != 1 || pod.Labels["where"] != "b" ||
				pod.Labels[kruise.ControllerRevisionHashKey] != revision || pod.Spec.Containers[0].Image != "nginx:b" {
				t.Errorf("the pods of b are %+v", pod)
			}
			if told := w.told(); len(told) != 1 || told[0] != "Normal SuccessfulUpdateSubset Create 3 Subset (a, b, c)" {
				t.Errorf("told was %q", told)
			}
			w.writes = nil
			w.reconcile()
			if len(w.writes) > 0 {
				t.Errorf("nothing changed, and written was %v", w.writes)
			}

			w.edit(func(d *kruise.UnitedDeployment) {
				image(d, "nginx:2")
				d.Spec.UpdateStrategy.ManualUpdate = &kruise.ManualUpdate{Partitions: map[string]int32{"a": 4, "c": 100}}
			})
			w.reconcile()
			a, c := w.child("a"), w.child("c")
			if templateOf(a).Spec.Containers[0].Image != "nginx:2" || a.GetLabels()[kruise.ControllerRevisionHashKey] == revision {
				t.Error("subset a was not updated")
			}
			if want := []int32{4, 3}; name != "Deployment" && (a.partition != want[0] || c.partition != want[1]) {
				t.Errorf("the partitions are %d and %d, want %v", a.partition, c.partition, want)
			}

			w.edit(func(d *kruise.UnitedDeployment) {
				d.Spec.Topology.Subsets = d.Spec.Topology.Subsets[:2]
				d.Spec.Topology.Subsets[0].Replicas = nil
			})
			w.reconcile()
			if got := w.counts(); got != "a=5 b=5" {
				t.Errorf("after a subset was taken out the others have %s", got)
			}
			if told := w.told(); len(told) != 1 || told[0] != "Normal SuccessfulUpdateSubset Delete 1 Subset (c)" {
				t.Errorf("told was %q", told)
			}
		})
	}
}

func templateOf(c *child) *corev1.PodTemplateSpec { return podTemplateOf(c.Object) }

func podTemplateOf(o client.Object) *corev1.PodTemplateSpec {
	switch o := o.(type) {
	case *kruise.CloneSet:
		return &o.Spec.Template
	case *kruise.StatefulSet:
		return &o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	}
	return nil
}

// The status sums up the subsets, and the revision is current once all pods have it.
func TestTheStatusFollowsTheSubsets(t *testing.T) {
	w := newWorld(t, nil)
	w.settle(2 * time.Second)
	s := w.get().Status
	if s.Replicas != 10 || s.ReadyReplicas != 10 || s.UpdatedReplicas != 10 || s.UpdatedReadyReplicas != 10 || s.CurrentRevision != s.UpdatedRevision ||
		s.LabelSelector != "app=web" || len(s.SubsetStatuses) != 3 || s.SubsetStatuses[2].Replicas != 4 || s.ObservedGeneration == 0 {
		t.Errorf("the status is %+v", s)
	}
	for _, c := range s.Conditions {
		if c.Status != corev1.ConditionTrue {
			t.Errorf("%s is %s: %s", c.Type, c.Status, c.Message)
		}
	}
	before := s.CurrentRevision
	w.edit(func(d *kruise.UnitedDeployment) { image(d, "nginx:2") })
	w.reconcile()
	w.run() // the pods are as they were: no controller has replaced them
	w.reconcile()
	s = w.get().Status
	if s.CurrentRevision != before || s.UpdatedRevision == before || s.UpdatedReplicas != 0 || reason(&s, kruise.UnitedDeploymentUpdated) != kruise.UnitedDeploymentRevisionUpdatingReason {
		t.Errorf("while pods are old the status is %+v", s)
	}
}

func reason(s *kruise.UnitedDeploymentStatus, kind kruise.UnitedDeploymentConditionType) string {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c.Reason
		}
	}
	return ""
}

// While only counts change the status is written now and then, and its last state always.
func TestManyPodsCostFewWrites(t *testing.T) {
	w := newWorld(t, nil)
	w.r.StatusInterval = 500 * time.Millisecond
	w.reconcile()
	w.run()
	version := w.get().ResourceVersion
	w.now = w.now.Add(100 * time.Millisecond)
	if again := w.reconcile(); again != 400*time.Millisecond || w.get().ResourceVersion != version {
		t.Errorf("it looks again after %s, the status is %+v", again, w.get().Status)
	}
	w.now = w.now.Add(400 * time.Millisecond)
	w.reconcile()
	if s := w.get().Status; s.ReadyReplicas != 10 {
		t.Errorf("the status is %+v", s)
	}
}

// A cache that does not show the last status makes no other one look like it: counts that go down and up again
// within the delay of the cache are written twice.
func TestAStatusIsNotComparedWithAnOldOne(t *testing.T) {
	w := newWorld(t, nil)
	var cached *kruise.UnitedDeployment // nil while the cache is not late
	w.r = New(reconcile.Deps{
		Client: interceptor.NewClient(w.api, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if d, ok := o.(*kruise.UnitedDeployment); ok && cached != nil {
				cached.DeepCopyInto(d)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		}}),
		Live: w.api, Events: w.events, Engine: w.engine, Rounds: w.rounds, Now: func() time.Time { return w.now },
	})
	w.reconcile()
	w.run()
	w.reconcile()
	before := w.get()
	w.setReady("a", 2)
	w.reconcile()
	if s := w.get().Status; s.ReadyReplicas != 9 {
		t.Fatalf("the status is %+v", s)
	}
	w.setReady("a", 3)
	cached = before
	if again := w.reconcile(); again == 0 {
		t.Error("nothing has it looked at again when the cache has caught up")
	}
	cached = nil
	w.reconcile()
	if s := w.get().Status; s.ReadyReplicas != 10 {
		t.Errorf("the status is %+v", s)
	}
}

// setReady sets how many pods of a child are ready.
func (w *world) setReady(subset string, n int32) {
	w.Helper()
	set := &kruise.CloneSet{}
	if err := w.api.Get(w.Context(), client.ObjectKeyFromObject(w.child(subset)), set); err != nil {
		w.Fatal(err)
	}
	set.Status.ReadyReplicas, set.Status.UpdatedReadyReplicas = n, n
	if err := w.api.Status().Update(w.Context(), set); err != nil {
		w.Fatal(err)
	}
}

// duplicateChild creates a second child of a subset, and returns the first one.
func (w *world) duplicateChild(subset string) *child {
	w.Helper()
	first := w.child(subset)
	twin := first.DeepCopyObject().(*kruise.CloneSet)
	twin.ObjectMeta = metav1.ObjectMeta{Name: "web-" + subset + "-00000", Namespace: "shop", Labels: first.GetLabels(), OwnerReferences: first.GetOwnerReferences()}
	twin.Status = kruise.CloneSetStatus{} // it has no pods yet
	if err := w.api.Create(w.Context(), twin); err != nil {
		w.Fatal(err)
	}
	return first
}

// Of two children of a subset the older one stays, and one of another kind goes.
func TestDuplicatesAndOtherKindsGo(t *testing.T) {
	w := newWorld(t, nil)
	w.reconcile()
	w.now = w.now.Add(time.Minute)
	first := w.duplicateChild("a")
	w.reconcile()
	if left := w.child("a"); len(w.children()) != 3 || left.GetUID() != first.GetUID() {
		t.Errorf("%d children are left, of subset a %s", len(w.children()), left.GetName())
	}
	w.edit(templates()["Deployment"])
	w.reconcile()
	for _, c := range w.children() {
		if c.kind.Kind != "Deployment" {
			t.Errorf("%s %s is left", c.kind.Kind, c.GetName())
		}
	}
	if got := w.counts(); got != "a=3 b=3 c=4" {
		t.Errorf("the Deployments have %s", got)
	}
}

// Numbers that contradict each other move nothing, and one event reports them.
func TestNumbersThatContradictEachOther(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*kruise.UnitedDeployment)
		want string
	}{
		"more than replicas": {func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[0].Replicas = ptr.To(intstr.FromInt(11)) },
			"Specified subset replicas is ineffective: specified subsets' replica (11) is greater than UnitedDeployment replica (10)"},
		"no percentage": {func(d *kruise.UnitedDeployment) {
			d.Spec.Topology.Subsets[1].Replicas = ptr.To(intstr.FromString("12.5%"))
		},
			`Specified subset replicas is ineffective: spec.topology.subsets[1].replicas of subset b: "12.5%" is neither a number nor a whole percentage from 0% to 100%`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.reconcile()
			w.told()
			w.edit(tc.edit)
			w.reconcile()
			w.reconcile()
			if got := w.counts(); got != "a=3 b=3 c=4" {
				t.Errorf("the subsets have %s", got)
			}
			if told := w.told(); len(told) != 1 || told[0] != "Warning Failed SpecifySubsetReplicas "+tc.want {
				t.Errorf("told was %q", told)
			}
		})
	}
}

// A hold leaves all subsets as they are, but not at an old template.
func TestAHoldStopsMoves(t *testing.T) {
	w := newWorld(t, nil)
	w.reconcile()
	w.told()
	w.rule(`hold contains {"reason": "Freeze", "message": "No moves today."}`)
	w.edit(func(d *kruise.UnitedDeployment) {
		d.Spec.Replicas = ptr.To[int32](20)
		d.Spec.Topology.Subsets = d.Spec.Topology.Subsets[1:]
		d.Spec.Topology.Subsets = append(d.Spec.Topology.Subsets, kruise.Subset{Name: "d"})
		image(d, "nginx:2")
	})
	w.reconcile()
	if got := w.counts(); got != "a=3 b=3 c=4" || templateOf(w.child("b")).Spec.Containers[0].Image != "nginx:2" {
		t.Errorf("while it is held the subsets have %s", got)
	}
	s := w.get().Status
	if told := w.told(); reason(&s, kruise.UnitedDeploymentAllocationHeld) != "Freeze" || len(told) != 1 || told[0] != "Warning AllocationHeld Freeze: No moves today. (rule extend.placement.x)" {
		t.Errorf("told was %q, %+v", told, s.Conditions)
	}
	if a, ok := w.rounds.ExplainWorkload(OwnerKind().GroupKind(), "shop", "web"); !ok || a.Verdict != "Held" || a.Reason != "Freeze" {
		t.Errorf("explained is %+v", a)
	}
	w.rule(`hold contains {"reason": "Freeze", "message": "m", "target": "nowhere"}`)
	w.reconcile()
	w.reconcile()
	s = w.get().Status
	if got := w.counts(); got != "b=7 c=7 d=6" || reason(&s, kruise.UnitedDeploymentAllocationHeld) != "" {
		t.Errorf("once nothing holds the subsets have %s, %+v", got, s.Conditions)
	}
}

// The rule of a denial explains the subset that it leaves no more to, and no other.
func TestADenialExplainsWhereItBinds(t *testing.T) {
	w := newWorld(t, nil)
	w.rule(`deny contains {"rule": "x.most", "reason": "Most", "message": "No more than 3.", "target": target, "room": room} if some target, room in {"a": 3, "c": 9}`)
	w.reconcile()
	a, _ := w.rounds.ExplainWorkload(OwnerKind().GroupKind(), "shop", "web")
	var got []string
	for _, s := range a.Subsets {
		got = append(got, fmt.Sprintf("%s %d %s: %s", s.Name, s.Replicas, s.Rule, s.Message))
	}
	want := []string{
		"a 3 x.most: No more than 3; an even share of what is left",
		"b 3 placement.allocation.share: an even share of what is left",
		"c 4 placement.allocation.share: an even share of what is left",
	}
	if !slices.Equal(got, want) {
		t.Errorf("explained is %q, want %q", got, want)
	}
}

// A zone that has no room gives its pods to the next, and gets none until it may have room
// again. Then those that moved stay.
func TestAdaptiveMovesPodsOnce(t *testing.T) {
	w := newWorld(t, func(d *kruise.UnitedDeployment) {
		limits(d, &kruise.AdaptiveUnitedDeploymentStrategy{RescheduleCriticalSeconds: ptr.To[int32](10), UnschedulableDuration: ptr.To[int32](60)}, 6, 6)
	})
	w.room["a"] = 2
	w.settle(5 * time.Second)
	if got := w.counts(); got != "a=6 b=4 c=0" {
		t.Fatalf("before pods are late the subsets have %s", got)
	}
	w.settle(8 * time.Second)
	if got := w.counts(); got != "a=2 b=6 c=2" || w.condition("a") != "False reschedule" {
		t.Fatalf("the subsets have %s, a is %s", got, w.condition("a"))
	}
	history := []string{}
	for range 40 {
		w.settle(time.Second)
		if got := w.counts(); len(history) == 0 || history[len(history)-1] != got {
			history = append(history, got)
		}
	}
	if len(history) != 1 {
		t.Errorf("within the duration the subsets had %v", history)
	}
	delete(w.room, "a")
	w.settle(time.Minute)
	if got := w.counts(); got != "a=2 b=6 c=2" || w.condition("a") != "True recover" {
		t.Errorf("with room again the subsets have %s, a is %s", got, w.condition("a"))
	}
	w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Replicas = ptr.To[int32](13) })
	w.settle(3 * time.Second)
	if got := w.counts(); got != "a=5 b=6 c=2" {
		t.Errorf("three more went to %s", got)
	}
	// Pods that crash for a moment are on their nodes, and move nowhere.
	for _, p := range w.podsOf("b") {
		w.crashing[p.Name] = true
	}
	w.settle(30 * time.Second)
	if got := w.counts(); got != "a=5 b=6 c=2" {
		t.Errorf("while pods of b crash the subsets have %s", got)
	}
}

// TestARescheduledSubsetIsMarkedBeforeItsPodsGo: the pods that found no node are what the mark is derived from. A manager
// that ends between the two writes, or whose cache is late, would forget it and put pods there again.
func TestARescheduledSubsetIsMarkedBeforeItsPodsGo(t *testing.T) {
	w := newWorld(t, func(d *kruise.UnitedDeployment) {
		limits(d, &kruise.AdaptiveUnitedDeploymentStrategy{RescheduleCriticalSeconds: ptr.To[int32](10), UnschedulableDuration: ptr.To[int32](60)}, 6, 6)
	})
	w.room["a"] = 2
	w.settle(5 * time.Second)
	before := &kruise.UnitedDeployment{}
	if err := w.api.Get(t.Context(), w.key, before); err != nil {
		t.Fatal(err)
	}
	broken := true
	w.r.Client = interceptor.NewClient(w.api, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		if broken {
			return errors.New("the process ends")
		}
		return c.SubResource(sub).Update(ctx, o, opts...)
	}})
	w.now = w.now.Add(8 * time.Second)
	if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}); err == nil || !strings.Contains(err.Error(), "writing which subsets") {
		t.Errorf("the round ended with %v", err)
	}
	if got := w.counts(); got != "a=6 b=4 c=0" {
		t.Errorf("without a mark the subsets have %s", got)
	}
	broken = false
	w.settle(time.Second)
	if got := w.counts(); got != "a=2 b=6 c=2" || w.condition("a") != "False reschedule" {
		t.Fatalf("the subsets have %s, a is %s", got, w.condition("a"))
	}
	// A round whose cache shows the status of before knows what it wrote.
	p := &subsetState{Subset: &before.Spec.Topology.Subsets[0]}
	(&reconcileRound{r: w.r, d: before}).recallMark(p)
	if p.condition == nil || p.condition.Reason != kruise.UnitedDeploymentSubsetRescheduleReason {
		t.Errorf("the mark is forgotten: %+v", p.condition)
	}
}

// Whatever room zones get and lose, no subset goes up, down and up again within the time for
// which one without room gets no pods.
func TestAdaptiveNeverOscillates(t *testing.T) {
	const duration = 25
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(17, seed)) //nolint:gosec // reproducible
			w := newWorld(t, func(d *kruise.UnitedDeployment) {
				limits(d, &kruise.AdaptiveUnitedDeploymentStrategy{RescheduleCriticalSeconds: ptr.To[int32](5), UnschedulableDuration: ptr.To[int32](duration)}, 4+r.IntN(8), 4+r.IntN(8))
			})
			for range 3 {
				for _, subset := range []string{"a", "b", "c"} {
					if delete(w.room, subset); r.IntN(2) == 0 {
						w.room[subset] = r.IntN(6)
					}
				}
				w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Replicas = ptr.To(int32(5 + r.IntN(10))) }) //nolint:gosec // it is small
				w.withoutOscillation((duration - 1) * time.Second)
			}
		})
	}
}

// withoutOscillation runs for some time and fails where the replicas of a subset go up, down and
// up again.
func (w *world) withoutOscillation(during time.Duration) {
	w.Helper()
	history, turns := map[string][]int32{}, map[string]string{}
	for range int(during / time.Second) {
		w.reconcile()
		w.run()
		w.now = w.now.Add(time.Second)
		for _, c := range w.children() {
			name, now := c.subsetName(), c.replicas
			if had := history[name]; len(had) > 0 && had[len(had)-1] == now {
				continue
			} else if len(had) > 0 {
				turn := "up "
				if now < had[len(had)-1] {
					turn = "down "
				}
				if !strings.HasSuffix(" "+turns[name], " "+turn) {
					turns[name] += turn
				}
			}
			history[name] = append(history[name], now)
		}
	}
	for name, made := range turns {
		if strings.Contains(made, "up down up") {
			w.Errorf("subset %s had %v replicas, with room %v", name, history[name], w.room)
		}
	}
}

func (w *world) podsOf(subset string) []corev1.Pod {
	w.Helper()
	list := &corev1.PodList{}
	if err := w.api.List(w.Context(), list, client.MatchingLabels{kruise.SubsetNameKey: subset}); err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// Pods that wait stay, others stand in for them, and go when the first have run for a while.
func TestReservedPodsStay(t *testing.T) {
	w := newWorld(t, func(d *kruise.UnitedDeployment) {
		limits(d, &kruise.AdaptiveUnitedDeploymentStrategy{
			RescheduleCriticalSeconds: ptr.To[int32](10), UnschedulableDuration: ptr.To[int32](30), ReserveUnschedulablePods: true,
		})
	})
	w.room["a"] = 4
	w.settle(20 * time.Second)
	s := w.get().Status
	if got := w.counts(); got != "a=10 b=6 c=0" || s.ReservedPods != 6 || s.Replicas != 10 || s.SubsetStatuses[0].ReservedPods != 6 ||
		s.LabelSelector != "app=web,apps.kruise.io/united-deployment-reserved-pod=false" || w.condition("a") != "False reschedule" {
		t.Fatalf("the subsets have %s, a is %s, the status is %+v", got, w.condition("a"), s)
	}
	reserved := 0
	for _, p := range w.podsOf("a") {
		if p.Labels[kruise.UnitedDeploymentReservedPodKey] == "true" {
			reserved++
		}
	}
	if reserved != 6 {
		t.Errorf("%d pods are labelled as reserved", reserved)
	}
	delete(w.room, "a")
	w.settle(15 * time.Second)
	if got := w.counts(); got != "a=10 b=6 c=0" {
		t.Errorf("before they have run for long the subsets have %s", got)
	}
	w.settle(30 * time.Second)
	if got := w.counts(); got != "a=10 b=0 c=0" || w.get().Status.ReservedPods != 0 || w.condition("a") != "True recover" {
		t.Errorf("when they run the subsets have %s, a is %s", got, w.condition("a"))
	}
}

// A pod of a native StatefulSet that is not ready would keep it from going on.
func TestStuckPodsOfStatefulSetsGo(t *testing.T) {
	for name, tc := range map[string]struct {
		edit  func(*appsv1.StatefulSetSpec)
		first int
		gone  []int
	}{
		"rolling update": {func(*appsv1.StatefulSetSpec) {}, 0, []int{1}},
		"with a start":   {func(s *appsv1.StatefulSetSpec) { s.Ordinals = &appsv1.StatefulSetOrdinals{Start: 10} }, 10, []int{11}},
		"on delete":      {func(s *appsv1.StatefulSetSpec) { s.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(d *kruise.UnitedDeployment) {
				templates()["StatefulSet"](d)
				tc.edit(&d.Spec.Template.StatefulSetTemplate.Spec)
				d.Spec.Topology.Subsets = d.Spec.Topology.Subsets[:1]
			})
			w.reconcile()
			set := w.child("a").Object.(*appsv1.StatefulSet)
			for i := range 3 {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprintf("%s-%d", set.Name, tc.first+i), Namespace: "shop", Labels: maps.Clone(set.Spec.Template.Labels),
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, statefulSets().GroupVersionKind)},
				}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
				if i == 2 { // its StatefulSet does not wait for it, whatever it says to a budget
					pod.Labels[policy.UnavailablePodLabelPrefix+"drained"] = "true"
					pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				}
				if err := w.api.Create(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			w.edit(func(d *kruise.UnitedDeployment) {
				image(d, "nginx:2")
				d.Spec.UpdateStrategy.ManualUpdate = &kruise.ManualUpdate{Partitions: map[string]int32{"a": 1}}
			})
			w.reconcile()
			set = w.child("a").Object.(*appsv1.StatefulSet)
			set.Status.ObservedGeneration = set.Generation
			if err := w.api.Status().Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			w.writes = nil
			w.reconcile()
			var want []string
			for _, i := range tc.gone {
				want = append(want, fmt.Sprintf("delete %s-%d", set.Name, i))
			}
			got := slices.DeleteFunc(w.writes, func(s string) bool { return !strings.HasPrefix(s, "delete ") })
			if !slices.Equal(got, want) {
				t.Errorf("written was %v, want %v", got, want)
			}
		})
	}
}

// maxUnavailable that was raised goes back to what the template says, or to the default, when no pod waits for room.
func TestARaisedMaxUnavailableGoesBack(t *testing.T) {
	for name, tc := range map[string]struct {
		template string
		says     *intstr.IntOrString
		want     int
	}{
		"CloneSet":                {"CloneSet", ptr.To(intstr.FromInt32(1)), 1},
		"CloneSet by default":     {"CloneSet", nil, 2},
		"Deployment":              {"Deployment", ptr.To(intstr.FromInt32(1)), 1},
		"Deployment by default":   {"Deployment", nil, 3},
		"Deployment in a percent": {"Deployment", ptr.To(intstr.FromString("50%")), 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(d *kruise.UnitedDeployment) {
				templates()[tc.template](d)
				d.Spec.Replicas = ptr.To[int32](10)
				d.Spec.Topology.Subsets = d.Spec.Topology.Subsets[:1]
				if c := d.Spec.Template.CloneSetTemplate; c != nil {
					c.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateCloneSetStrategy{MaxUnavailable: tc.says}
				} else {
					d.Spec.Template.DeploymentTemplate.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: tc.says}
				}
			})
			w.reconcile()
			switch o := w.child("a").Object.(type) {
			case *kruise.CloneSet:
				o.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(8))
				if err := w.api.Update(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			case *appsv1.Deployment:
				o.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(8))
				if err := w.api.Update(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			w.reconcile()
			if got := w.child("a").unavailable; got != tc.want {
				t.Errorf("maxUnavailable is %d, want %d", got, tc.want)
			}
			w.writes = nil
			w.reconcile()
			if len(w.writes) > 0 {
				t.Errorf("written again was %v", w.writes)
			}
		})
	}
}

func TestClaimTemplatesOfACloneSetReachItsSubsets(t *testing.T) {
	w := newWorld(t, nil)
	w.reconcile()
	w.edit(func(d *kruise.UnitedDeployment) {
		d.Spec.Template.CloneSetTemplate.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	})
	w.reconcile()
	for _, c := range w.children() {
		if claims := c.Object.(*kruise.CloneSet).Spec.VolumeClaimTemplates; len(claims) != 1 || claims[0].Name != "data" {
			t.Errorf("subset %s has the claim templates %v", c.subsetName(), claims)
		}
	}
}

// What OpenKruise left is taken over: no child and no pod is written.
func TestTakingOverFromOpenKruise(t *testing.T) {
	for _, file := range []string{"before", "during", "after"} {
		t.Run(file, func(t *testing.T) {
			w := newWorld(t, nil, openkruise.Objects(t, apiserver.Scheme(t), "testdata/openkruise/"+file+".yaml")...)
			w.key.Name = "zones"
			w.now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
			updated := w.get().Status.UpdatedRevision
			w.writes = nil
			for range 3 {
				w.reconcile()
			}
			if len(w.writes) > 0 {
				t.Errorf("written was %v", w.writes)
			}
			if s := w.get().Status; s.UpdatedRevision != updated || s.Replicas != 5 {
				t.Errorf("the status is %+v", s)
			}
		})
	}
}

// A workload that the API server refuses has one event, whatever name it would have had.
func TestARefusedWorkloadIsToldOnce(t *testing.T) {
	w := newWorld(t, nil)
	drawn := 0
	w.r.Client = interceptor.NewClient(w.api, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if _, ok := o.(*kruise.CloneSet); !ok {
			return c.Create(ctx, o, opts...)
		}
		drawn++
		return fmt.Errorf("CloneSet %q is invalid: its template has no labels", o.GetGenerateName()+[]string{"x7k2p", "bcd4f", "zz29x"}[drawn/3%3])
	}})
	for range 3 {
		if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}); err == nil {
			t.Fatal("there was no error")
		}
	}
	s := w.get().Status
	var want []string
	for _, subset := range []string{"a", "b", "c"} {
		want = append(want, fmt.Sprintf(`creating the CloneSet of subset %s: CloneSet "web-%s-*" is invalid: its template has no labels`, subset, subset))
	}
	if told := w.told(); len(told) != 1 || told[0] != "Warning FailedUpdateSubset "+strings.Join(want, "\n") {
		t.Errorf("told was %q", told)
	}
	if reason(&s, kruise.UnitedDeploymentSubsetProvisioned) != kruise.UnitedDeploymentErrorReason {
		t.Errorf("the conditions are %+v", s.Conditions)
	}
}
