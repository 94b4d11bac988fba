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

// refreshPods lets every pod go on with what has begun: its in-place update, its lifecycle
// state, its gates. It starts nothing. Gates that open are no matter to the rest of the
// round, and are opened beside it: the opening ends with its wait.
func (r *Round) refreshPods(ctx context.Context, f *Facts) (*Facts, *asyncGateOpener, error) {
	now, beside := &refreshed{r: r}, &refreshed{r: r}
	most, _ := r.atOnce()
	for _, p := range f.Pods {
		act, err := r.nextWrite(f, p)
		if err != nil {
			now.acts = append(now.acts, func() error { return err })
		}
		switch {
		case act == nil:
		case most > 1 && r.onlyOpensGates(f, p):
			beside.addWrite(ctx, p, act)
		default:
			now.addWrite(ctx, p, act)
		}
	}
	o := &asyncGateOpener{refreshed: beside, group: recovery.NewGroup("rollout", 0)}
	o.group.Go(func() error { return r.RunParallel(beside.acts) })
	err := r.RunParallel(now.acts)
	return r.updateFacts(f, now.written), o, err
}

// refreshed are writes of pods, and the pods as they were written.
type refreshed struct {
	r       *Round
	acts    []func() error
	mu      sync.Mutex
	written []*corev1.Pod
}

func (w *refreshed) addWrite(ctx context.Context, p *facts.Pod, act write) {
	w.acts = append(w.acts, func() error {
		pod, err := act(ctx)
		w.r.RecordWrite(ctx, p.Pod, pod, err)
		if pod != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.written = append(w.written, pod)
		}
		return err
	})
}

// asyncGateOpener is the opening of gates beside the rest of a round.
type asyncGateOpener struct {
	*refreshed
	group *recovery.Group
}

// waitOpened returns the pods whose gates were opened, once all acts have ended.
func (o *asyncGateOpener) waitOpened() ([]*corev1.Pod, error) {
	err := o.group.Wait()
	return o.written, err
}

// onlyOpensGates reports whether gates of a pod are opened that nothing else in the round looks at:
// the pod is what it is to be and stays, and it is not available before its kubelet has
// seen them open.
func (r *Round) onlyOpensGates(f *Facts, p *facts.Pod) bool {
	return p.InPlaceDone && !p.Ready && f.AtTarget(p) && !f.IsLeaving(p) && r.needsGatesOpened(p)
}

// nextWrite finds the one thing that a pod needs next, nil if nothing.
func (r *Round) nextWrite(f *Facts, p *facts.Pod) (write, error) {
	if _, ok := r.c.kind.(KindWithSharedPods); ok {
		return r.kindWrite(p), nil
	}
	if !p.InPlaceDone { // most have no update under way, and are not to be looked into each round
		step, left, err := r.c.updater.NextStep(p.Pod)
		if err != nil {
			return nil, err
		}
		r.RequeueAfter(left)
		if step == inplace.Grace || step == inplace.Batch {
			return func(ctx context.Context) (*corev1.Pod, error) { return r.c.updater.ContinueUpdate(ctx, p.Pod, step) }, nil
		}
	}
	state := lifecycle.NextState(p.Pod, f.Lifecycle, lifecycle.Facts{AtTarget: f.AtTarget(p), Complete: p.InPlaceDone})
	if p.InPlaceDone && r.needsGatesOpened(p) {
		var edit func(*corev1.Pod)
		if state != p.State && !lifecycle.HasHookKey(p.Pod) { // it costs no write of its own
			edit = func(pod *corev1.Pod) { lifecycle.SetState(pod, state, f.Now) }
		}
		return func(ctx context.Context) (*corev1.Pod, error) { return r.c.updater.MarkReady(ctx, p.Pod, edit) }, nil
	}
	if state != p.State {
		return func(ctx context.Context) (*corev1.Pod, error) {
			return r.c.states.MoveToState(ctx, p.Pod, state, f.Lifecycle, false)
		}, nil
	}
	if f.AtTarget(p) && !f.IsLeaving(p) && lifecycle.HasStaleHookKey(p.Pod) { // what is to be moved or deleted prepares again
		return func(ctx context.Context) (*corev1.Pod, error) { return r.c.states.ReleaseHookKeys(ctx, p.Pod) }, nil
	}
	if act := r.kindWrite(p); act != nil {
		return act, nil
	}
	if p.Ready && p.State != kruise.LifecycleStatePreparingDelete && !f.IsAvailable(p) {
		r.RequeueAfter(p.ReadySince.Add(f.MinReady).Sub(f.Now)) // it becomes available by waiting
	}
	return nil, nil
}

// needsGatesOpened reports whether the readiness gates of a pod without an update under way are to be
// opened now. Those of a new pod that were not opened with its creation are once it has a
// node, long before its containers run: by then its lifecycle state changes too, which takes
// no write of its own so.
func (r *Round) needsGatesOpened(p *facts.Pod) bool {
	return inplace.WantsReady(p.Pod) && (p.Spec.NodeName != "" || inplace.HasGateCondition(p.Pod))
}

// kindWrite is what the kind itself keeps in order.
func (r *Round) kindWrite(p *facts.Pod) write {
	if kind, ok := r.c.kind.(KindWithLabelRefresh); ok {
		if act := kind.RefreshPod(r, p); act != nil {
			return act
		}
	}
	return nil
}

// KindWithLabelRefresh is a Kind that has more to keep in order on its pods.
type KindWithLabelRefresh interface {
	// RefreshPod returns the write that a pod needs, nil if none.
	RefreshPod(r *Round, p *facts.Pod) func(context.Context) (*corev1.Pod, error)
}
