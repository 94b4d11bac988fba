// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/rules"
)

// ordinals is a small kind: it keeps pods 0, 1 and 2, and moves a pod by deleting it. It is
// none of the kinds that the manager has.
type ordinals struct {
	hasty bool // it deletes all that are to be moved at once
}

const wanted = 3

func (*ordinals) WorkloadType() rollout.Type {
	return rollout.Type{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		New:              func() client.Object { return &appsv1.ReplicaSet{} },
		NewList:          func() client.ObjectList { return &appsv1.ReplicaSetList{} },
		Status:           func(o client.Object) any { return &o.(*appsv1.ReplicaSet).Status },
	}
}

func (*ordinals) ReadSpec(o client.Object) (rollout.Spec, error) {
	selector, err := metav1.LabelSelectorAsSelector(o.(*appsv1.ReplicaSet).Spec.Selector)
	return rollout.Spec{
		Replicas: wanted, Selector: selector,
		Strategy: points.Strategy{Type: "RollingUpdate", Policy: "ReCreate", MaxUnavailable: 1},
	}, err
}

func (k *ordinals) ResolveTemplates(ctx context.Context, r *rollout.Round) (rollout.Templates, error) {
	set := r.Workload.(*appsv1.ReplicaSet)
	return r.ResolveHistory(ctx, revision.Owner{Kind: k.WorkloadType().GroupVersionKind, Selector: set.Spec.Selector, Template: &set.Spec.Template}, inplace.NewClassifier())
}

func (*ordinals) DeletionAsked(client.Object, *corev1.Pod) bool { return false }

func (*ordinals) ComputeDifference(f *rollout.Facts) rollout.UpdateDelta {
	old := 0
	for _, p := range f.Pods {
		if !p.Facts.Updated {
			old++
		}
	}
	return rollout.UpdateDelta{Update: old, MaxUnavailable: 1}
}

func (k *ordinals) ScalePods(ctx context.Context, r *rollout.Round, f *rollout.Facts) (bool, error) {
	var acts []func() error
	for i := range wanted {
		name := fmt.Sprint(r.Workload.GetName(), "-", i)
		there := func(p *facts.Pod) bool { return p.Name == name }
		if slices.ContainsFunc(f.Pods, there) || slices.ContainsFunc(f.Gone, func(p *corev1.Pod) bool { return p.Name == name }) {
			continue
		}
		acts = append(acts, func() error {
			set, t := r.Workload.(*appsv1.ReplicaSet), f.Templates.(*rollout.PodTemplates)
			pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
			pod.Namespace, pod.Name = set.Namespace, name
			pod.Labels[rollout.RevisionLabel] = t.LabelValue(t.UpdateRevision())
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, k.WorkloadType().GroupVersionKind)}
			if err := r.CachedClient().Create(ctx, pod); err != nil {
				return &rollout.CreateError{Err: err}
			}
			r.RecordCreated(pod)
			return nil
		})
	}
	if k.hasty && len(acts) == 0 {
		for _, p := range f.Pods {
			if !p.Facts.Updated {
				acts = append(acts, func() error { return r.DeletePod(ctx, f, p) })
			}
		}
	}
	return len(acts) > 0, r.SlowStart(false, acts)
}

func (*ordinals) RecreatePod(ctx context.Context, r *rollout.Round, f *rollout.Facts, p *facts.Pod) error {
	return r.DeletePod(ctx, f, p)
}

func (*ordinals) ReportStatus(ctx context.Context, r *rollout.Round, f *rollout.Facts, _ rollout.Result) error {
	c := f.CountPods()
	return r.WriteStatus(ctx, &appsv1.ReplicaSetStatus{Replicas: int32(c.Total), ReadyReplicas: int32(c.Ready)})
}

func (*ordinals) TruncateHistory(context.Context, *rollout.Round, *rollout.Facts, bool) error {
	return nil
}

func live(t simulation.T, e *engine.Engine, hasty bool) *simulation.Harness {
	labels := map[string]string{"app": "db"}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Generation: 1}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db:1"}}}}
	return simulation.NewHarness(t, simulation.HarnessConfig{Workload: set, Engine: e, Kind: func() rollout.Kind { return &ordinals{hasty: hasty} }})
}

func next(o client.Object) { o.(*appsv1.ReplicaSet).Spec.Template.Spec.Containers[0].Image = "db:2" }

func patient(t *testing.T) *engine.Engine {
	t.Helper()
	return rules.Engine(t, "")
}

// Whatever goes wrong with one write of a rollout, the end is the same, and the promise of
// one unavailable pod holds at every write.
func TestAKindIsLivedThroughItsAdapterAlone(t *testing.T) {
	e := patient(t)
	for _, fault := range []simulation.Fault{simulation.LostRace, simulation.LostAnswer, simulation.EndsBefore, simulation.EndsAfter, simulation.Refuses} {
		t.Run(string(fault), func(t *testing.T) {
			for at := 1; ; at += 3 {
				l, writes := live(t, e, false), 0
				l.Fault = func() simulation.Fault {
					if writes++; writes == at {
						return fault
					}
					return simulation.NoFault
				}
				l.RunUntilStable()
				l.ChangeWorkload(next)
				l.RunUntilStable()
				if got := l.CountPods(); got.Active != wanted || got.Available != wanted || got.Updated != wanted {
					t.Fatalf("at write %d: in the end there are %+v, want %d that are updated%s", at, got, wanted, l.DescribeState())
				}
				if ended := fault == simulation.EndsBefore || fault == simulation.EndsAfter; at <= writes && ended != slices.Contains(l.ActionHistory(), "the controller starts again") {
					t.Errorf("at write %d the controller has ended: %t", at, !ended)
				}
				if at > writes {
					if at < 12 {
						t.Errorf("a rollout takes %d writes: it is not what this test is for", writes)
					}
					return
				}
			}
		})
	}
}

func TestTheCacheOfALifeLagsBehind(t *testing.T) {
	l := live(t, patient(t), false)
	l.Reconcile()
	creates := func() (n int) {
		for _, h := range l.ActionHistory() {
			if strings.HasPrefix(h, "create Pod/") {
				n++
			}
		}
		return n
	}
	if n := len(l.ListPods()); n != wanted || creates() != wanted {
		t.Fatalf("%d pods are made by %d writes, want %d", n, creates(), wanted)
	}
	l.Reconcile() // it sees none, and remembers
	if creates() != wanted {
		t.Errorf("while the cache lags behind %d pods are made", creates())
	}
	if shown := l.ShowNext(&corev1.PersistentVolumeClaim{}); shown {
		t.Error("the cache shows a claim that is none")
	}
	if !l.ShowNext(&corev1.Pod{}) || !l.IsDue() {
		t.Error("a pod that the cache shows has nothing to be done")
	}
	l.RunUntilStable()
	p := l.ListPods()[0]
	l.Delete(p)
	if got := l.FindPod(p.Name); got == nil || got.DeletionTimestamp == nil {
		t.Fatalf("a pod that is deleted does not terminate: %v", got)
	}
	l.RunUntilStable()
	if got := l.FindPod(p.Name); got == nil || got.UID == p.UID {
		t.Error("the pod is not replaced once its kubelet has stopped it")
	}
}

// failing is a test that is to fail.
type failing struct{ why string }

func (*failing) Helper() {}
func (f *failing) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	panic(f)
}

// settle lets everything happen until nothing does, or the test fails.
func settle(l *simulation.Harness, f *failing) {
	defer func() {
		if r := recover(); r != nil && r != f {
			panic(r)
		}
	}()
	l.RunUntilStable()
}

// With a budget that is used up no pod is moved. Where one is all the same, the life fails.
func TestABudgetHoldsTheWritesOfALife(t *testing.T) {
	e := patient(t)
	for name, passes := range map[string]bool{"with the webhooks of pods": false, "where all writes pass": true} {
		t.Run(name, func(t *testing.T) {
			f := &failing{}
			l := live(f, e, false)
			l.ProtectPods()
			settle(l, f)
			l.SetBudget(policy.PodUnavailableBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, MinAvailable: ptr.To(intstr.FromInt32(wanted))})
			if passes {
				l.LetAllWritesPass()
			}
			l.ChangeWorkload(next)
			settle(l, f)
			if found := strings.Contains(f.why, "leaves 2 pods of PodUnavailableBudget life available, which wants 3"); found != passes || !passes && f.why != "" {
				t.Fatalf("it failed with %q", f.why)
			}
			if passes {
				return
			}
			if got := l.CountPods(); got.Updated != 0 || got.Available != wanted {
				t.Errorf("with a budget that is used up there are %+v%s", got, l.DescribeState())
			}
			l.DropBudget()
			settle(l, f)
			if got := l.CountPods(); got.Updated != wanted || f.why != "" {
				t.Errorf("without a budget there are %+v: %s", got, f.why)
			}
		})
	}
}

func TestABrokenPromiseFailsALife(t *testing.T) {
	f := &failing{}
	l := live(f, patient(t), true)
	l.RunUntilStable()
	l.ChangeWorkload(next)
	settle(l, f)
	if !strings.Contains(f.why, "leaves 1 pods available, there must be 2") {
		t.Errorf("it failed with %q", f.why)
	}
}
