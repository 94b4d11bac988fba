package cloneset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
)

// world is everything one reconcile knows. It is built by gather and is not
// shared.
type world struct {
	set       *kruise.CloneSet
	memory    *memory
	gates     Gates
	excludePD bool
	now       time.Time
	minReady  time.Duration
	strategy  decision.Strategy
	selector  string
	history   revision.History

	terms  facts.Terms
	raw    []*corev1.Pod // active: not finished, not terminating
	pods   []*facts.Pod  // the same, as facts
	gone   []*corev1.Pod // finished or terminating
	claims []*corev1.PersistentVolumeClaim
	going  []string // ids of claims on their way out

	topology *facts.Topology
	again    requeue
	// waiting is true while the cache does not show a write of ours in time.
	waiting bool

	// what the round decided, for the report
	planned   bool // whether there is anything to update was looked at
	backwards bool // pods are moved back to the current revision
	settled   bool // no pod of the current revision has to be moved
	taken     []string
	policies  string // revision that decides this round
	bundles   []string
	records   []decision.Record
	holds     []decision.Hold
	skipped   []selection.Skip

	changesMu sync.Mutex // pods are moved in parallel; it guards records too
	changes   map[string]way
	// refused are pods that were chosen and not moved, because of a budget.
	refused    []string
	budgetHold *decision.Hold
	// denied are pods whose writes the API server refused.
	denied []selection.Skip
}

// requeue keeps the earliest time to look again.
type requeue struct {
	mu    sync.Mutex
	after time.Duration
}

func (q *requeue) in(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if d > 0 && (q.after == 0 || d < q.after) {
		q.after = d
	}
}

func (r *Reconciler) gather(ctx context.Context, set *kruise.CloneSet, m *memory) (*world, error) {
	w := &world{
		set: set.DeepCopy(), memory: m, gates: r.gates, excludePD: r.excludePD, now: r.now(),
		minReady: time.Duration(set.Spec.MinReadySeconds) * time.Second, topology: r.topology, changes: map[string]way{},
	}
	w.memory.status.overlay(w.set)
	snapshot := r.engine.Snapshot()
	w.policies, w.bundles = snapshot.Revision(), snapshot.Bundles().IDs()
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading spec.selector: %w", err)
	}
	w.selector = selector.String()
	if w.strategy, err = resolve(set); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "a number of the strategy cannot be read and counts as 0")
	}
	if ru := rolling(set); ru != nil {
		if w.terms, err = facts.NewTerms(ru.PriorityStrategy); err != nil {
			return nil, fmt.Errorf("reading spec.updateStrategy: %w", err)
		}
	}
	owned, err := r.ownedPods(ctx, w)
	if err != nil || w.waiting {
		return w, err
	}
	for _, pod := range owned {
		switch {
		case !metav1.IsControlledBy(pod, set): // released, and the cache does not show it yet
		case inactive(pod):
			w.gone = append(w.gone, pod)
		case !selector.Matches(labelSet(pod)):
			if err := r.release(ctx, w, pod); err != nil {
				return nil, err
			}
		default:
			w.raw = append(w.raw, pod)
		}
	}
	slices.SortFunc(w.raw, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	if err = r.ownedClaims(ctx, w); err != nil {
		return nil, err
	}
	if w.history, err = r.resolveHistory(ctx, w); err != nil {
		return nil, err
	}
	w.recount()
	return w, nil
}

// recount makes the facts again after pods were written.
func (w *world) recount() {
	w.pods = w.memory.facts.Update(w.raw, w.terms, w.topology, func(p *corev1.Pod) bool {
		return w.updated(p.Labels[appsv1.ControllerRevisionHashLabelKey])
	})
}

func (r *Reconciler) ownedPods(ctx context.Context, w *world) ([]*corev1.Pod, error) {
	mark := r.overlay.Mark()
	list := &corev1.PodList{}
	if err := r.client.List(ctx, list, client.InNamespace(w.set.Namespace), client.MatchingFields{OwnerIndex: string(w.set.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	out, late := r.overlay.Apply(w.set.UID, mark, pods, r.timeout)
	if len(late) == 0 {
		return out, nil
	}
	return out, r.catchUp(ctx, w, late)
}

// catchUp deals with writes the cache has not shown for too long (CS-19). With
// the gate they are dropped and the CloneSet goes on in 10 s; without, each is
// read from the API server, and the CloneSet waits while the cache is wrong.
func (r *Reconciler) catchUp(ctx context.Context, w *world, late []*corev1.Pod) error {
	r.leaks(w.set.Namespace, w.set.Name)
	w.waiting = true
	w.again.in(10 * time.Second)
	for _, pod := range late {
		found := &corev1.Pod{}
		err := r.live.Get(ctx, client.ObjectKeyFromObject(pod), found)
		switch {
		case r.gates.DropLateExpectations, apierrors.IsNotFound(err), err == nil && found.UID != pod.UID:
			r.overlay.Drop(w.set.UID, pod.UID)
		case err != nil:
			return fmt.Errorf("reading pod %s past the cache: %w", pod.Name, err)
		}
	}
	return nil
}

// inactive says whether a pod is finished or on its way out.
func inactive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ownedClaims are the claims that pods may use, and the ids of those they may not.
func (r *Reconciler) ownedClaims(ctx context.Context, w *world) error {
	list := &corev1.PersistentVolumeClaimList{}
	if err := r.client.List(ctx, list, client.InNamespace(w.set.Namespace), client.MatchingFields{OwnerIndex: string(w.set.UID)}); err != nil {
		return fmt.Errorf("listing claims: %w", err)
	}
	usable, going := w.memory.usable(list.Items)
	w.claims = usable
	for _, c := range going {
		w.going = append(w.going, c.Labels[kruise.CloneSetInstanceIDKey])
	}
	return nil
}

func (r *Reconciler) resolveHistory(ctx context.Context, w *world) (revision.History, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := r.client.List(ctx, list, client.InNamespace(w.set.Namespace), client.MatchingFields{OwnerIndex: string(w.set.UID)}); err != nil {
		return revision.History{}, fmt.Errorf("listing revisions: %w", err)
	}
	existing := w.memory.withOwn(list.Items, w.now.Add(-r.timeout))
	owner := revision.Owner{
		Object: w.set, Kind: OwnerKind(), Selector: w.set.Spec.Selector, Template: &w.set.Spec.Template,
		Claims: w.set.Spec.VolumeClaimTemplates, Current: w.set.Status.CurrentRevision,
		Live: r.live,
	}
	if w.set.Status.CollisionCount != nil {
		owner.Collisions = *w.set.Status.CollisionCount
	}
	h, err := revision.Resolve(ctx, r.client, owner, existing)
	if err == nil && !slices.Contains(existing, h.Update) {
		w.memory.revisions[h.Update.Name] = ownRevision{h.Update, w.now}
	}
	return h, err
}

// release takes the owner reference off a pod whose labels do not match any
// more (CS-16).
func (r *Reconciler) release(ctx context.Context, w *world, pod *corev1.Pod) error {
	before, pod := pod, pod.DeepCopy()
	pod.OwnerReferences = slices.DeleteFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == w.set.UID })
	err := r.client.Patch(ctx, pod, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("releasing pod %s: %w", pod.Name, err)
	}
	r.wrote(ctx, w, pod, pod, nil)
	return nil
}

func (w *world) subject() decision.Subject {
	return decision.Subject{Kind: "CloneSet", Namespace: w.set.Namespace, Name: w.set.Name, UID: string(w.set.UID)}
}

func (w *world) workload() decision.Workload {
	return decision.Workload{
		Kind: "CloneSet", Namespace: w.set.Namespace, Name: w.set.Name, UID: string(w.set.UID),
		Replicas: replicas(w.set), Labels: w.set.Labels, Annotations: policyAnnotations(w.set.Annotations),
	}
}

// leaves says whether a pod is asked to go, or prepares to.
func (w *world) leaves(p *facts.Pod) bool {
	return w.specified(p) || p.State == kruise.LifecycleStatePreparingDelete
}

func (w *world) specified(p *facts.Pod) bool {
	if _, ok := p.Labels[kruise.SpecifiedDeleteKey]; ok {
		return true
	}
	return slices.Contains(w.set.Spec.ScaleStrategy.PodsToDelete, p.Name)
}
