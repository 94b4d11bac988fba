// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/ordinals"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scaledown"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// staleAgain is the time after which the controller checks again for a claim that the garbage collector is to delete.
const staleAgain = time.Second

// scaler scales one StatefulSet in one round.
type scaler struct {
	k        *Kind
	r        *rollout.Round
	f        *rollout.Facts
	t        *rollout.PodTemplates
	set      *kruise.StatefulSet
	memory   *memory
	claims   *claimSet
	ordinals ordinals.Range
	wanted   []int // ordinals, the lowest first

	active map[int]*facts.Pod  // by ordinal
	gone   map[int]*corev1.Pod // finished or terminating
	// unowned counts, by ordinal, the claims that do not have their owners yet because the round ended
	// before their turn. The pods of these ordinals are not deleted yet, since the claims are to be deleted with them.
	unowned map[int]int
	// held are the ordinals whose new pods have the current revision, because the update is held.
	held map[int]bool
	// recorded are the claim templates of revisions, by their names. Pods are created in parallel.
	recording sync.Mutex
	recorded  map[string][]corev1.PersistentVolumeClaim
}

func (k *Kind) newScaler(r *rollout.Round, f *rollout.Facts) *scaler {
	s := k.newReadOnlyScaler(f)
	s.r, s.memory = r, r.KindMemory().(*memory)
	return s
}

// newReadOnlyScaler returns a scaler that cannot write.
func (k *Kind) newReadOnlyScaler(f *rollout.Facts) *scaler {
	s := &scaler{
		k: k, f: f, t: f.Templates.(*rollout.PodTemplates), set: f.Workload.(*kruise.StatefulSet),
		claims: f.Found.(*claimSet), active: map[int]*facts.Pod{}, gone: map[int]*corev1.Pod{},
		unowned: map[int]int{}, held: map[int]bool{}, recorded: map[string][]corev1.PersistentVolumeClaim{},
	}
	s.ordinals = k.desiredOrdinals(s.set)
	s.wanted = s.ordinals.AllOrdinals()
	for _, p := range f.Pods {
		if n, ok := ordinalOf(s.set, p.Name); ok {
			s.active[n] = p
		}
	}
	for _, p := range f.Gone {
		if n, ok := ordinalOf(s.set, p.Name); ok {
			s.gone[n] = p
		}
	}
	return s
}

// need is what the ordinals require.
type need struct {
	// create are the ordinals whose pods may be created now. finished are the ended pods that have to be deleted
	// first.
	create   []int
	finished []*corev1.Pod
	// unavailable counts the pods that use up the limit of scaleStrategy.
	unavailable int
	// condemned are the pods that may be deleted now because no ordinal wants them, the
	// highest first.
	condemned []*facts.Pod
	// stale is true if a pod waits until a claim is deleted.
	stale bool
	// missing counts the ordinals without a pod. Ordinals at which computeNeed has stopped wait for
	// others. They do not count as AtTarget, because the round does not try to create their pods.
	missing selection.Unavailable
}

func (s *scaler) isMonotonic() bool {
	return s.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

// ScalePods implements rollout.Kind (ASTS-06, ASTS-07, ASTS-10). It creates missing pods
// in ascending order, and deletes pods that no ordinal wants in descending order.
// OrderedReady handles one pod at a time, and waits for it.
func (k *Kind) ScalePods(ctx context.Context, r *rollout.Round, f *rollout.Facts) (acted bool, err error) {
	s := k.newScaler(r, f)
	if err := s.tidyClaims(ctx); err != nil {
		return false, err
	}
	n := s.computeNeed()
	if n.stale {
		s.r.RequeueAfter(staleAgain) // no event of the set follows when a claim is deleted
	}
	leaving := slices.ContainsFunc(f.Pods, f.IsLeaving)
	if len(n.create) == 0 && len(n.finished) == 0 && len(n.condemned) == 0 && !leaving {
		return false, nil
	}
	if err := s.askHold(ctx, n); err != nil {
		return false, err
	}
	plan := s.decideScale(ctx, n)
	if ended := s.withoutHooked(n.finished); len(ended) > 0 && plan.Create > 0 {
		return s.deleteFinished(ctx, ended)
	}
	if create := n.create[:min(plan.Create, len(n.create))]; len(create) > 0 {
		err := s.createPods(ctx, create)
		return err == nil && s.isMonotonic(), err
	}
	return s.applyDeletions(ctx, n, plan)
}

// computeNeed walks the ordinals as ASTS-06 says. With OrderedReady it stops at a pod that is not available or is still to
// be created; otherwise each such pod uses up one of scaleStrategy.maxUnavailable.
func (s *scaler) computeNeed() (n need) {
	limited := s.f.Strategy.ScaleMaxUnavailable
	spent, blocked := 0, false
	spend := func() { // with OrderedReady nothing more is done
		spent++
		blocked = s.isMonotonic()
	}
	for _, i := range s.wanted {
		p, gone := s.active[i], s.gone[i]
		stopped := blocked || spent >= limited
		if p == nil {
			n.missing.Total++
			countIf(&n.missing.AtTarget, gone != nil || !stopped)
		}
		switch {
		case stopped:
		case gone != nil && gone.DeletionTimestamp == nil:
			n.finished = append(n.finished, gone)
			spend()
		case p == nil && gone != nil:
			n.unavailable++
			spend()
		case p == nil && s.hasStaleClaim(i):
			n.stale, blocked = true, s.isMonotonic()
		case p == nil:
			n.create = append(n.create, i)
			spend()
		case s.isCreationBounded() && !s.f.IsAvailable(p):
			n.unavailable++
			spend()
		}
	}
	n.condemned = s.condemnedPods(blocked)
	return n
}

// isCreationBounded reports whether the creation of pods waits for pods that are not available.
func (s *scaler) isCreationBounded() bool {
	return s.isMonotonic() || s.scaleLimit() > 0
}

// scaleLimit is scaleStrategy.maxUnavailable as a number of pods, 0 if it is not set.
func (s *scaler) scaleLimit() int {
	if strategy := s.set.Spec.ScaleStrategy; strategy == nil || strategy.MaxUnavailable == nil {
		return 0
	}
	return s.f.Strategy.ScaleMaxUnavailable
}

// countUnavailableBefore returns a function that returns how many ordinals before that of a pod use up
// scaleStrategy.maxUnavailable.
func (s *scaler) countUnavailableBefore() func(*facts.Pod) int {
	if s.scaleLimit() == 0 {
		return nil
	}
	before, n := make(map[int]int, len(s.wanted)), 0
	for _, i := range s.wanted {
		before[i] = n
		p := s.active[i]
		countIf(&n, p == nil || !s.f.IsAvailable(p))
	}
	return func(p *facts.Pod) int {
		ordinal, _ := ordinalOf(s.set, p.Name)
		return before[ordinal] // only pods with wanted ordinals are moved
	}
}

// condemnedPods are the pods that may be deleted because no ordinal wants them. OrderedReady
// deletes only the highest, once nothing terminates and every pod that an ordinal wants is healthy.
// Other condemned pods need not be healthy: one that never becomes healthy would keep all of them indefinitely.
func (s *scaler) condemnedPods(blocked bool) (out []*facts.Pod) {
	for i, p := range s.active {
		if !s.ordinals.HasOrdinal(i) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *facts.Pod) int { return *b.Facts.Ordinal - *a.Facts.Ordinal })
	owned := func(p *facts.Pod) bool { return s.unowned[*p.Facts.Ordinal] == 0 }
	if !s.isMonotonic() || len(out) == 0 {
		return slices.DeleteFunc(out, func(p *facts.Pod) bool { return !owned(p) })
	}
	for _, p := range s.gone {
		if p.DeletionTimestamp != nil {
			return nil
		}
	}
	if blocked || !owned(out[0]) {
		return nil
	}
	return out[:1]
}

// decideScale evaluates rollout/scale and clamps the answer to the need.
func (s *scaler) decideScale(ctx context.Context, n need) points.ScaleOutput {
	in := s.f.ScaleInput()
	in.Up, in.TotalUnavailable = len(n.create)+len(n.finished), n.unavailable
	in.Down, in.ReadyLimit = len(n.condemned), len(n.condemned)
	for _, i := range n.create {
		if s.revisionOf(i).Name == s.f.Templates.CurrentRevision() {
			in.UpCurrent++
		}
	}
	in.UpWithoutSurge, in.UpCurrentWithoutSurge = in.Up, in.UpCurrent
	for _, p := range n.condemned {
		in.Pods = append(in.Pods, s.f.DeletionFacts(p))
	}
	out := rollout.AskScale(ctx, s.r, s.f, in)
	out.Create = max(min(out.Create, in.Up), 0)
	out.Delete = max(min(out.Delete, in.Down), 0)
	return out
}

// applyDeletions deletes the pods whose deletion was requested or prepared, as far as the answer
// allows, and the pods that no ordinal wants.
func (s *scaler) applyDeletions(ctx context.Context, n need, plan points.ScaleOutput) (bool, error) {
	var out []*facts.Pod
	if plan.Planned == points.PlannedPrepared || plan.Planned == points.PlannedAll {
		out = append(out, s.preparedPods()...)
	}
	if plan.Planned == points.PlannedAll {
		out = append(out, s.requestedDeletions()...)
	}
	if plan.Delete > 0 {
		positions := make([]int, len(n.condemned))
		for i := range positions {
			positions[i] = i
		}
		for _, i := range scaledown.OrderDeletions(n.condemned, positions, plan, nil, s.r.NodeTopology())[:plan.Delete] {
			out = append(out, n.condemned[i])
		}
	}
	return s.deletePods(ctx, out)
}

// preparedPods are wanted pods in PreparingDelete, which are to be recreated.
func (s *scaler) preparedPods() (out []*facts.Pod) {
	for _, i := range s.wanted {
		if p := s.active[i]; p != nil && p.State == kruise.LifecycleStatePreparingDelete {
			out = append(out, p)
		}
	}
	return out
}

// requestedDeletions are wanted pods whose deletion a user requested, the highest first: those that are
// unavailable, and as many of the others as may become unavailable (ASTS-10).
func (s *scaler) requestedDeletions() (out []*facts.Pod) {
	unavailable := 0
	for _, i := range s.wanted {
		if p := s.active[i]; p == nil || !s.f.IsSteady(p) {
			unavailable++
		}
	}
	for _, i := range slices.Backward(s.wanted) {
		p := s.active[i]
		if p == nil || !s.f.DeletionAsked(p) || p.State == kruise.LifecycleStatePreparingDelete {
			continue
		}
		if s.f.IsSteady(p) {
			if unavailable >= s.f.Strategy.MaxUnavailable {
				continue
			}
			unavailable++
		}
		out = append(out, p)
	}
	return out
}

// deletePods deletes pods. It sets a pod that a hook holds to PreparingDelete instead.
func (s *scaler) deletePods(ctx context.Context, pods []*facts.Pod) (bool, error) {
	return s.r.LetGo(ctx, s.f, pods, func(p *facts.Pod) error { return s.r.DeletePod(ctx, s.f, p) })
}

// RecreatePod implements rollout.Kind: it deletes the pod, or sets it to PreparingDelete if a hook holds it.
// The next scale phase creates another (ASTS-12).
func (k *Kind) RecreatePod(ctx context.Context, r *rollout.Round, f *rollout.Facts, p *facts.Pod) error {
	return r.LetOneGo(ctx, f, p, func(p *facts.Pod) error { return r.DeletePod(ctx, f, p) })
}

// tidyClaims gives claims the owners that they are to have, and creates claims that pending
// pods wait for (ASTS-06, ASTS-07).
func (s *scaler) tidyClaims(ctx context.Context) error {
	if s.claims.named == nil { // no revision has claims
		return nil
	}
	var acts []func() error
	var mu sync.Mutex
	own := func(i int, p *corev1.Pod) {
		for _, act := range s.ownClaims(ctx, p, i) {
			s.unowned[i]++
			acts = append(acts, func() error {
				if err := act(); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				s.unowned[i]--
				return nil
			})
		}
	}
	for _, i := range slices.Sorted(maps.Keys(s.active)) { // sorted, so that the error is the same in each round
		p := s.active[i]
		own(i, p.Pod)
		if p.Status.Phase == corev1.PodPending && s.ordinals.HasOrdinal(i) {
			acts = append(acts, func() error { return s.createClaims(ctx, i, s.claimTemplates(s.t.RevisionOf(p.Pod))) })
		}
	}
	for _, i := range slices.Sorted(maps.Keys(s.gone)) {
		p := s.gone[i]
		if p.DeletionTimestamp != nil { // the ordinal may not be wanted any more since then
			own(i, p)
		}
	}
	return s.r.RunParallel(acts)
}

// withoutHooked are the pods that no hook holds, so that their ordinals do not wait for the hooks of others.
func (s *scaler) withoutHooked(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return lifecycle.BeforeDelete(p, s.f.Lifecycle) == lifecycle.Wait })
}

// deleteFinished deletes pods that failed or succeeded, so that new pods can take their names. It sets a pod that a hook holds
// to PreparingDelete instead.
func (s *scaler) deleteFinished(ctx context.Context, pods []*corev1.Pod) (bool, error) {
	ended := make([]*facts.Pod, len(pods))
	for i, p := range pods {
		ended[i] = &facts.Pod{Pod: p}
	}
	return s.deletePods(ctx, ended)
}
