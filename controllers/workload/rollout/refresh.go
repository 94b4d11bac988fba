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

// write changes a pod and returns it as it was stored.
type write func(context.Context) (*corev1.Pod, error)

// refreshPods continues for each pod what has begun: its in-place update, its lifecycle
// state, its gates. It begins nothing new. The rest of the round does not depend on gates that open, so they
// are opened in parallel to it: waitOpened waits for that.
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

// asyncGateOpener opens gates in parallel to the rest of a round.
type asyncGateOpener struct {
	*refreshed
	group *recovery.Group
}

// waitOpened returns the pods whose gates were opened, once all acts have ended.
func (o *asyncGateOpener) waitOpened() ([]*corev1.Pod, error) {
	err := o.group.Wait()
	return o.written, err
}

// onlyOpensGates reports whether a pod only needs gates opened that nothing else in the round depends on:
// the pod is at its target and stays, and it is not available before its kubelet has
// seen the open gates.
func (r *Round) onlyOpensGates(f *Facts, p *facts.Pod) bool {
	return p.InPlaceDone && !p.Ready && f.AtTarget(p) && !f.IsLeaving(p) && r.needsGatesOpened(p)
}

// nextWrite returns the next write that a pod needs, nil if none.
func (r *Round) nextWrite(f *Facts, p *facts.Pod) (write, error) {
	if _, ok := r.c.kind.(KindWithSharedPods); ok {
		return r.kindWrite(p), nil
	}
	if !p.InPlaceDone { // most pods have no update under way, so NextStep would only cost time
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
		if state != p.State && !lifecycle.HasHookKey(p.Pod) { // the state is written together with the gates
			edit = func(pod *corev1.Pod) { lifecycle.SetState(pod, state, f.Now) }
		}
		return func(ctx context.Context) (*corev1.Pod, error) { return r.c.updater.MarkReady(ctx, p.Pod, edit) }, nil
	}
	if state != p.State {
		return func(ctx context.Context) (*corev1.Pod, error) {
			return r.c.states.MoveToState(ctx, p.Pod, state, f.Lifecycle, false)
		}, nil
	}
	if f.AtTarget(p) && !f.IsLeaving(p) && lifecycle.HasStaleHookKey(p.Pod) { // a pod that is to be moved or deleted prepares again
		return func(ctx context.Context) (*corev1.Pod, error) { return r.c.states.ReleaseHookKeys(ctx, p.Pod) }, nil
	}
	if act := r.kindWrite(p); act != nil {
		return act, nil
	}
	if p.Ready && p.State != kruise.LifecycleStatePreparingDelete && !f.IsAvailable(p) {
		r.RequeueAfter(p.ReadySince.Add(f.MinReady).Sub(f.Now)) // the pod becomes available after a time
	}
	return nil, nil
}

// needsGatesOpened reports whether the readiness gates of a pod without an update under way are to be
// opened now. If the gates of a new pod were not opened with its creation, they are opened once it has a
// node, long before its containers run. At that time its lifecycle state changes too, so that one write does
// both.
func (r *Round) needsGatesOpened(p *facts.Pod) bool {
	return inplace.WantsReady(p.Pod) && (p.Spec.NodeName != "" || inplace.HasGateCondition(p.Pod))
}

// kindWrite returns the write that the kind itself requires for a pod.
func (r *Round) kindWrite(p *facts.Pod) write {
	if kind, ok := r.c.kind.(KindWithLabelRefresh); ok {
		if act := kind.RefreshPod(r, p); act != nil {
			return act
		}
	}
	return nil
}

// KindWithLabelRefresh is a Kind that keeps more of its pods up to date, such as labels.
type KindWithLabelRefresh interface {
	// RefreshPod returns the write that a pod needs, nil if none.
	RefreshPod(r *Round, p *facts.Pod) func(context.Context) (*corev1.Pod, error)
}
