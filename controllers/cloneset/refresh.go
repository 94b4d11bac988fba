package cloneset

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
)

// refresh lets every pod go on with what has begun: its in-place update, its
// lifecycle state, its gates. It starts nothing. A pod that was written is
// laid into the world, so that the round goes on with it.
func (r *Reconciler) refresh(ctx context.Context, w *world) (changed bool, err error) {
	var mu sync.Mutex
	byUID := map[string]*corev1.Pod{}
	var acts []func() error
	for _, p := range w.pods {
		act, err := r.refreshOne(w, p)
		if err != nil {
			acts = append(acts, func() error { return err })
		}
		if act == nil {
			continue
		}
		acts = append(acts, func() error {
			pod, err := act(ctx)
			r.wrote(ctx, w, p.Pod, pod, err)
			if pod != nil {
				mu.Lock()
				defer mu.Unlock()
				byUID[string(pod.UID)] = pod
			}
			return err
		})
	}
	err = r.inParallel(w, acts)
	for i, pod := range w.raw {
		if written := byUID[string(pod.UID)]; written != nil {
			w.raw[i], changed = written, true
		}
	}
	return changed, err
}

// refreshOne finds the one thing a pod needs next, nil if nothing.
func (r *Reconciler) refreshOne(w *world, p *facts.Pod) (func(context.Context) (*corev1.Pod, error), error) {
	if !p.InPlaceDone { // most have no update under way, and are not to be looked into each round
		step, left, err := r.updater.Step(p.Pod)
		if err != nil {
			return nil, err
		}
		w.again.in(left)
		if step == inplace.Grace || step == inplace.Batch {
			return func(ctx context.Context) (*corev1.Pod, error) { return r.updater.Continue(ctx, p.Pod, step) }, nil
		}
	}
	if p.InPlaceDone && inplace.WantsReady(p.Pod) {
		return func(ctx context.Context) (*corev1.Pod, error) { return r.updater.MarkReady(ctx, p.Pod) }, nil
	}
	next := lifecycle.Refresh(p.Pod, w.set.Spec.Lifecycle, lifecycle.Facts{AtTarget: w.atTarget(p), Complete: p.InPlaceDone})
	if next != p.State {
		return func(ctx context.Context) (*corev1.Pod, error) {
			return r.states.Move(ctx, p.Pod, next, w.set.Spec.Lifecycle, false)
		}, nil
	}
	if p.Labels[podTemplateHash] == "" && p.Labels[revisionLabel] != "" {
		return func(ctx context.Context) (*corev1.Pod, error) { return r.labelShort(ctx, p.Pod) }, nil
	}
	if p.Ready && p.State != kruise.LifecycleStatePreparingDelete && !p.Available(w.minReady, w.now) {
		w.again.in(p.ReadySince.Add(w.minReady).Sub(w.now)) // it becomes available by waiting
	}
	return nil, nil
}

// atTarget says whether a pod has the revision that it is to have. One of the
// current revision has it when the partition keeps as many as there are: it may
// have been told to prepare its update before others took its place, and what
// waits with its traffic drained for an update that does not come, waits for ever.
func (w *world) atTarget(p *facts.Pod) bool {
	return revision.Same(p.Labels[revisionLabel], w.target().Name) || (w.settled && !p.Facts.Updated)
}
