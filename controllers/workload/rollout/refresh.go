// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// write changes a pod and returns it as it is stored.
type write func(context.Context) (*corev1.Pod, error)

// refresh lets every pod go on with what has begun: its in-place update, its lifecycle
// state, its gates. It starts nothing. Gates that open are no matter to the rest of the
// round, and are opened beside it: the opening ends with its wait.
func (r *Round) refresh(ctx context.Context, f *Facts) (*Facts, *opening, error) {
	now, beside := &refreshed{r: r}, &refreshed{r: r}
	most, _ := r.atOnce()
	for _, p := range f.Pods {
		act, err := r.next(f, p)
		if err != nil {
			now.acts = append(now.acts, func() error { return err })
		}
		switch {
		case act == nil:
		case most > 1 && r.besides(f, p):
			beside.add(ctx, p, act)
		default:
			now.add(ctx, p, act)
		}
	}
	o := &opening{refreshed: beside, group: recovery.NewGroup("rollout", 0)}
	o.group.Go(func() error { return r.Parallel(beside.acts) })
	err := r.Parallel(now.acts)
	return r.with(f, now.written), o, err
}

// refreshed are writes of pods, and the pods as they were written.
type refreshed struct {
	r       *Round
	acts    []func() error
	mu      sync.Mutex
	written []*corev1.Pod
}

func (w *refreshed) add(ctx context.Context, p *facts.Pod, act write) {
	w.acts = append(w.acts, func() error {
		pod, err := act(ctx)
		w.r.Wrote(ctx, p.Pod, pod, err)
		if pod != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.written = append(w.written, pod)
		}
		return err
	})
}

// opening is the opening of gates beside the rest of a round.
type opening struct {
	*refreshed
	group *recovery.Group
}

// wait returns the pods whose gates were opened, once all acts have ended.
func (o *opening) wait() ([]*corev1.Pod, error) {
	err := o.group.Wait()
	return o.written, err
}

// besides says whether gates of a pod are opened that nothing else in the round looks at:
// the pod is what it is to be and stays, and it is not available before its kubelet has
// seen them open.
func (r *Round) besides(f *Facts, p *facts.Pod) bool {
	return p.InPlaceDone && !p.Ready && f.AtTarget(p) && !f.Leaves(p) && r.opens(p)
}

// next finds the one thing that a pod needs next, nil if nothing.
func (r *Round) next(f *Facts, p *facts.Pod) (write, error) {
	if _, ok := r.c.kind.(Guest); ok {
		return r.more(p), nil
	}
	if !p.InPlaceDone { // most have no update under way, and are not to be looked into each round
		step, left, err := r.c.updater.Step(p.Pod)
		if err != nil {
			return nil, err
		}
		r.Again(left)
		if step == inplace.Grace || step == inplace.Batch {
			return func(ctx context.Context) (*corev1.Pod, error) { return r.c.updater.Continue(ctx, p.Pod, step) }, nil
		}
	}
	state := lifecycle.Refresh(p.Pod, f.Lifecycle, lifecycle.Facts{AtTarget: f.AtTarget(p), Complete: p.InPlaceDone})
	if p.InPlaceDone && r.opens(p) {
		var edit func(*corev1.Pod)
		if state != p.State && !lifecycle.Held(p.Pod) { // it costs no write of its own
			edit = func(pod *corev1.Pod) { lifecycle.Set(pod, state, f.Now) }
		}
		return func(ctx context.Context) (*corev1.Pod, error) { return r.c.updater.MarkReady(ctx, p.Pod, edit) }, nil
	}
	if state != p.State {
		return func(ctx context.Context) (*corev1.Pod, error) {
			return r.c.states.Move(ctx, p.Pod, state, f.Lifecycle, false)
		}, nil
	}
	if f.AtTarget(p) && !f.Leaves(p) && lifecycle.Stale(p.Pod) { // what is to be moved or deleted prepares again
		return func(ctx context.Context) (*corev1.Pod, error) { return r.c.states.Release(ctx, p.Pod) }, nil
	}
	if act := r.more(p); act != nil {
		return act, nil
	}
	if p.Ready && p.State != kruise.LifecycleStatePreparingDelete && !f.Available(p) {
		r.Again(p.ReadySince.Add(f.MinReady).Sub(f.Now)) // it becomes available by waiting
	}
	return nil, nil
}

// opens says whether the readiness gates of a pod without an update under way are to be
// opened now. Those of a new pod that were not opened with its creation are once it has a
// node, long before its containers run: by then its lifecycle state changes too, which takes
// no write of its own so.
func (r *Round) opens(p *facts.Pod) bool {
	return inplace.WantsReady(p.Pod) && (p.Spec.NodeName != "" || inplace.Opened(p.Pod))
}

// more is what the kind itself keeps in order.
func (r *Round) more(p *facts.Pod) write {
	if kind, ok := r.c.kind.(Refresher); ok {
		if act := kind.Refresh(r, p); act != nil {
			return act
		}
	}
	return nil
}

// Refresher is a Kind that has more to keep in order on its pods.
type Refresher interface {
	// Refresh returns the write that a pod needs, nil if none.
	Refresh(r *Round, p *facts.Pod) func(context.Context) (*corev1.Pod, error)
}
