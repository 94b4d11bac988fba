// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// reconcileRound is one round of a UnitedDeployment.
type reconcileRound struct {
	r        *Reconciler
	d        *kruise.UnitedDeployment
	now      time.Time
	kind     kind
	history  revision.History
	strategy string
	// parts are the subsets of the spec, in their order.
	parts []*subsetState
	// surplus are children of no subset of the spec, or of another kind than the template's. duplicates are
	// children of subsets that have another child.
	surplus, duplicates []*child
	// replaced are the subsets of those surplus children that are of another kind, with their pods.
	replaced []*subsetState
	// placement is the answer of placement/allocation.
	placement placement.AllocationOutput
	// standing describes the surplus children that stay until pods of subsets are available, with the number of pods that they keep.
	standing []string
	// kept is the sum of these numbers.
	kept   int32
	status kruise.UnitedDeploymentStatus
	holds  holds
	again  time.Duration
}

// subsetState is a subset, with its child.
type subsetState struct {
	*kruise.Subset
	child *child // nil if there is none yet
	pods  []*corev1.Pod
	// condition is Schedulable, nil if it was never set.
	condition *kruise.UnitedDeploymentSubsetCondition
	// marked is whether condition was False when the round began.
	marked, unschedulable bool
	placed, reserved      int
	// replaced is how many replicas the subset's children of another kind have.
	replaced int32
	// refused is why the child could not be created in this round, and held is whether a hold prevented its creation.
	refused error
	held    bool
	// late are old pods that an update did not reach in time.
	late int
	// replicas is the desired number of pods, and partition is how many of them stay at the old revision.
	replicas, partition int32
}

// currentReplicas is how many pods a subset has. Pods of children of another kind count while a hold keeps these children, so that no other
// subset gets their replicas.
func (p *subsetState) currentReplicas() int {
	if p.child == nil {
		return int(p.replaced)
	}
	return int(p.child.replicas)
}

// requeueWithin requeues the UnitedDeployment after a delay, unless it is requeued earlier; 0 means never.
func (t *reconcileRound) requeueWithin(after time.Duration) {
	t.again = requeue.EarliestDelay(t.again, max(after, 0))
}

// reconcileSubsets runs one round, and returns when to reconcile again.
func (r *Reconciler) reconcileSubsets(ctx context.Context, d *kruise.UnitedDeployment) (time.Duration, error) {
	k, ok := kindOf(&d.Spec.Template)
	if !ok { // admission refuses it
		r.recordEventOnce(d, kruise.FailedUpdateSubsetReason, "spec.template: should provide one of statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate and deploymentTemplate")
		return 0, nil
	}
	t := &reconcileRound{r: r, d: d, now: r.Now(), kind: k, strategy: strategyOf(&d.Spec), status: *d.Status.DeepCopy()}
	var err error
	if t.history, err = r.resolveRevisions(ctx, d); err != nil {
		r.recordEventOnce(d, kruise.FailedRevisionProvisionReason, err.Error())
		return 0, err
	}
	if err := t.gatherChildren(ctx); err != nil {
		r.recordEventOnce(d, kruise.FailedFindSubsetsReason, err.Error())
		return 0, err
	}
	failed := t.actAndReport(ctx)
	// Truncate also after a round that failed. Otherwise each edit of a template that always fails would leave one more revision.
	return t.again, message.JoinErrors(failed, t.truncateHistory(ctx, failed != nil))
}

// actAndReport decides, writes the children and reports.
func (t *reconcileRound) actAndReport(ctx context.Context) error {
	if err := t.findUnschedulable(ctx); err != nil {
		return err
	}
	a := t.decideAllocation(ctx) // marks subsets as well
	if err := t.recordMarks(ctx); err != nil {
		return err
	}
	acted := t.applyAllocation(ctx, a)
	if err := t.reportStatus(ctx, a, acted); err != nil {
		return err
	}
	return acted
}

// strategyOf returns how replicas are distributed to subsets.
func strategyOf(spec *kruise.UnitedDeploymentSpec) string {
	schedule := &spec.Topology.ScheduleStrategy
	switch {
	case schedule.Type == kruise.AdaptiveUnitedDeploymentScheduleStrategyType && schedule.Adaptive != nil && schedule.Adaptive.ReserveUnschedulablePods:
		return placement.Reserve
	case schedule.Type == kruise.AdaptiveUnitedDeploymentScheduleStrategyType:
		return placement.Adaptive
	}
	for i := range spec.Topology.Subsets {
		if s := &spec.Topology.Subsets[i]; s.MinReplicas != nil || s.MaxReplicas != nil {
			return placement.Limits
		}
	}
	return placement.Fixed
}

// criticalDuration is how long a pod may find no node before its subset counts as without room. unschedulableDuration is how long the subset then
// gets no more pods.
func (t *reconcileRound) criticalDuration() time.Duration {
	return strategySeconds(t.d, func(a *kruise.AdaptiveUnitedDeploymentStrategy) *int32 { return a.RescheduleCriticalSeconds }, kruise.DefaultRescheduleCriticalSeconds)
}

func (t *reconcileRound) unschedulableDuration() time.Duration {
	return strategySeconds(t.d, func(a *kruise.AdaptiveUnitedDeploymentStrategy) *int32 { return a.UnschedulableDuration }, kruise.DefaultUnschedulableDuration)
}

func strategySeconds(d *kruise.UnitedDeployment, of func(*kruise.AdaptiveUnitedDeploymentStrategy) *int32, unset int32) time.Duration {
	n := unset
	if a := d.Spec.Topology.ScheduleStrategy.Adaptive; a != nil {
		n = ptr.Deref(of(a), unset)
	}
	return time.Duration(n) * time.Second
}

// gatherChildren finds the children of all kinds, and their pods if the strategy needs them (UD-10).
func (t *reconcileRound) gatherChildren(ctx context.Context) error {
	var all []*child
	for _, k := range allKinds() {
		found, err := t.r.listChildren(ctx, t.d, k)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, compareChildren)
	subsets := t.d.Spec.Topology.Subsets
	for i := range subsets {
		p := &subsetState{Subset: &subsets[i]}
		for j := range t.d.Status.SubsetStatuses {
			if s := &t.d.Status.SubsetStatuses[j]; s.Name == p.Name {
				p.condition = schedulableCondition(s)
			}
		}
		t.recallMark(p)
		p.marked = p.condition != nil && p.condition.Status == corev1.ConditionFalse
		t.parts = append(t.parts, p)
	}
	for _, c := range all {
		i := slices.IndexFunc(t.parts, func(p *subsetState) bool { return p.Name == c.subsetName() })
		switch {
		case c.GetDeletionTimestamp() != nil: // its place is free when it is gone, unless the subset has another child
			if i >= 0 && c.kind.GroupVersionKind == t.kind.GroupVersionKind && t.parts[i].child == nil {
				t.parts[i].child = c
			}
		case i < 0, c.kind.GroupVersionKind != t.kind.GroupVersionKind:
			t.surplus = append(t.surplus, c)
			if i >= 0 {
				t.parts[i].replaced += c.replicas
				t.replaced = append(t.replaced, &subsetState{Subset: t.parts[i].Subset, child: c})
			}
		case t.parts[i].child != nil:
			t.duplicates = append(t.duplicates, c)
		default:
			t.parts[i].child = c
		}
	}
	return t.gatherPods(ctx)
}

// gatherPods reads the pods of children if the strategy or the status needs them, and of children that another kind replaces.
func (t *reconcileRound) gatherPods(ctx context.Context) error {
	for _, p := range t.replaced {
		if err := t.podsOf(ctx, p); err != nil {
			return err
		}
	}
	for _, p := range t.parts {
		if p.child == nil || t.strategy != placement.Adaptive && t.strategy != placement.Reserve && !p.child.countReady {
			continue
		}
		if err := t.podsOf(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// schedulableCondition returns a copy of the condition Schedulable of a subset.
func schedulableCondition(s *kruise.UnitedDeploymentSubsetStatus) *kruise.UnitedDeploymentSubsetCondition {
	for _, c := range s.Conditions {
		if c.Type == kruise.UnitedDeploymentSubsetSchedulable {
			return &c
		}
	}
	return nil
}

// listChildren lists the children of one kind from the cache.
func (r *Reconciler) listChildren(ctx context.Context, d *kruise.UnitedDeployment, k kind) ([]*child, error) {
	list := k.makeList()
	if err := r.Client.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingFields{rollout.OwnerIndex: string(d.UID)}); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", k.Kind, err)
	}
	return ownedChildren(d, k, list)
}

func ownedChildren(d *kruise.UnitedDeployment, k kind, list client.ObjectList) (out []*child, err error) {
	err = meta.EachListItem(list, func(o runtime.Object) error {
		if object, ok := o.(client.Object); ok && metav1.IsControlledBy(object, d) {
			c := k.read(object)
			c.kind = k
			out = append(out, &c)
		}
		return nil
	})
	return out, err
}

// podsOf reads the pods of a child.
func (t *reconcileRound) podsOf(ctx context.Context, p *subsetState) error {
	list := &corev1.PodList{}
	selector, err := metav1.LabelSelectorAsSelector(p.child.selector)
	if err != nil {
		return fmt.Errorf("reading the selector of %s %s: %w", p.child.kind.Kind, p.child.GetName(), err)
	}
	in := []client.ListOption{client.InNamespace(t.d.Namespace), client.UnsafeDisableDeepCopy, client.MatchingLabelsSelector{Selector: selector}}
	deployment := p.child.kind.Kind == "Deployment"
	if !deployment {
		in = append(in, client.MatchingFields{rollout.OwnerIndex: string(p.child.GetUID())})
	}
	if err := t.r.Client.List(ctx, list, in...); err != nil {
		return fmt.Errorf("listing pods of subset %s: %w", p.Name, err)
	}
	sets := map[types.UID]bool{}
	for i := range list.Items {
		pod := &list.Items[i]
		if !availability.IsActive(pod) || deployment && !t.ofDeployment(ctx, pod, p.child, sets) {
			continue
		}
		p.pods = append(p.pods, pod)
		if pod.Spec.NodeName != "" {
			p.placed++
		}
	}
	slices.SortFunc(p.pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// ofDeployment reports whether a pod belongs to a ReplicaSet of a child.
func (t *reconcileRound) ofDeployment(ctx context.Context, pod *corev1.Pod, c *child, known map[types.UID]bool) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != "ReplicaSet" {
		return false
	}
	if is, ok := known[ref.UID]; ok {
		return is
	}
	set := &appsv1.ReplicaSet{}
	err := t.r.Client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name}, set)
	known[ref.UID] = err == nil && metav1.IsControlledBy(set, c)
	return known[ref.UID]
}

func isReady(pod *corev1.Pod) bool { return availability.IsRunningAndReady(pod) }

// readyAt is when a pod became ready.
func readyAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// truncateHistory deletes old revisions that no child and no pod has. It uses the current revision that this round
// found, since no later event may follow. After a round that failed, the current revision before it is kept too: the status
// may not be written, and a child may have been created from that revision.
func (t *reconcileRound) truncateHistory(ctx context.Context, failed bool) error {
	limit, history := int(ptr.Deref(t.d.Spec.RevisionHistoryLimit, 10)), t.history
	used := map[string]bool{}
	if failed {
		used[history.Current.Name], used[t.d.Status.CurrentRevision] = true, true
	}
	for _, rev := range history.All {
		if rev.Name == t.status.CurrentRevision {
			history.Current = rev
		}
	}
	for _, c := range slices.Concat(t.surplus, t.duplicates) {
		used[c.GetLabels()[kruise.ControllerRevisionHashKey]] = true
	}
	for _, p := range slices.Concat(t.parts, t.replaced) {
		if p.child != nil {
			used[p.child.GetLabels()[kruise.ControllerRevisionHashKey]] = true
		}
		for _, pod := range p.pods {
			used[pod.Labels[kruise.ControllerRevisionHashKey]] = true
		}
	}
	return history.Truncate(ctx, t.r.Client, limit, func(rev *appsv1.ControllerRevision) bool { return used[rev.Name] })
}
