// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
)

// RecordWrite notes a pod as it was written, so that the next round sees it so whatever the
// cache says; nil if it was not. An act that fails half-way has written too. Where the
// error leaves open whether a write was done, the pod is read.
func (r *Round) RecordWrite(ctx context.Context, was, pod *corev1.Pod, err error) {
	uid := r.Workload.GetUID()
	if pod != nil {
		r.c.overlay.RecordPatched(uid, pod)
	}
	if !reconcile.IsIndeterminate(err) {
		return
	}
	if found, gone := r.rereadPod(ctx, was); found != nil && !gone {
		r.c.overlay.RecordPatched(uid, found)
	}
}

// rereadPod reads a pod past the cache. gone is true when it is not there any more, or
// terminates; where the API server does not answer, both are nothing.
func (r *Round) rereadPod(ctx context.Context, was *corev1.Pod) (found *corev1.Pod, gone bool) {
	found = &corev1.Pod{}
	err := r.c.Live.Get(ctx, client.ObjectKeyFromObject(was), found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true
	case err != nil:
		return nil, false
	}
	return found, found.UID != was.UID || found.DeletionTimestamp != nil
}

// SetState brings a pod to a lifecycle state. rehook has its hook asked once more.
func (r *Round) SetState(ctx context.Context, f *Facts, p *facts.Pod, state kruise.LifecycleStateType, rehook bool) error {
	pod, err := r.c.states.MoveToState(ctx, p.Pod, state, f.Lifecycle, rehook)
	r.RecordWrite(ctx, p.Pod, pod, err)
	return err
}

// TakenError is of a pod that cannot be created because there is one of its name, which is
// another's or terminates.
type TakenError struct {
	// By is the pod that has the name.
	By  *corev1.Pod
	Err error
}

func (e *TakenError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *TakenError) Unwrap() error { return e.Err }

// CreatePod creates a pod, and opens its readiness gates where its lifecycle state does not
// wait for a node. One of the name that is there already is ours if the answer to an earlier
// attempt was lost, or if the cache does not show it yet.
func (r *Round) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	err := r.c.Client.Create(ctx, pod)
	if err == nil {
		r.openNew(ctx, pod)
		return nil
	}
	if apierrors.IsAlreadyExists(err) || reconcile.IsIndeterminate(err) {
		found := &corev1.Pod{}
		if r.c.Live.Get(ctx, client.ObjectKeyFromObject(pod), found) == nil {
			if !metav1.IsControlledBy(found, r.Workload) || found.DeletionTimestamp != nil {
				return &TakenError{By: found, Err: fmt.Errorf("creating pod %s: %w", pod.Name, err)}
			}
			found.DeepCopyInto(pod)
			return nil
		}
	}
	return fmt.Errorf("creating pod %s: %w", pod.Name, err)
}

// openNew opens the readiness gates of a pod that was created just now. A kubelet that learns
// of the pod later writes its readiness once; else it writes it again when a gate is opened
// behind its first status. Where the write fails, a later round opens the gates, once the pod
// has a node. So it does for a pod whose state changes when it has one: both are one write.
func (r *Round) openNew(ctx context.Context, pod *corev1.Pod) {
	if lifecycle.PodState(pod) == kruise.LifecycleStatePreparingNormal || !inplace.WantsReady(pod) {
		return
	}
	if opened, err := r.c.updater.MarkReady(ctx, pod, nil); err == nil {
		opened.DeepCopyInto(pod)
	}
}

// RecordCreated notes a pod that was created.
func (r *Round) RecordCreated(pod *corev1.Pod) {
	r.c.overlay.RecordCreated(r.Workload.GetUID(), pod)
	r.created.addPod(pod)
	r.RecordNormal(kruise.SuccessfulCreateReason, r.c.typ.Events.Created(r.Workload.GetName(), pod.Name))
}

// DeletePod deletes a pod and tells it by an event.
func (r *Round) DeletePod(ctx context.Context, f *Facts, p *facts.Pod) error {
	if err := r.deleteObject(ctx, f, p); err != nil {
		if !IsConflict(err) {
			r.RecordWarning(kruise.FailedDeleteReason, r.c.typ.Events.DeleteFailed(r.Workload.GetName(), p.Name, err))
		}
		return fmt.Errorf("deleting pod %s: %w", p.Name, err)
	}
	r.c.overlay.RecordDeleted(r.Workload.GetUID(), p.Pod)
	r.RecordNormal(kruise.SuccessfulDeleteReason, r.c.typ.Events.Deleted(r.Workload.GetName(), p.Name))
	return nil
}

// LetGo deletes pods by a function of the kind, but for those that a hook holds: the hook is
// told, and waited for. It reports whether it wrote.
func (r *Round) LetGo(ctx context.Context, f *Facts, pods []*facts.Pod, remove func(*facts.Pod) error) (acted bool, err error) {
	var acts []func() error
	for _, p := range pods {
		if act := r.letGo(ctx, f, p, remove); act != nil {
			acts = append(acts, act)
		}
	}
	return len(acts) > 0, r.RunParallel(acts)
}

// LetOneGo is LetGo of one pod, for moves, which are under way beside each other already: an
// act of Parallel may not wait for another one.
func (r *Round) LetOneGo(ctx context.Context, f *Facts, p *facts.Pod, remove func(*facts.Pod) error) error {
	if act := r.letGo(ctx, f, p, remove); act != nil {
		return act()
	}
	return nil
}

// letGo is what a pod needs on its way out, nil while a hook holds it.
func (r *Round) letGo(ctx context.Context, f *Facts, p *facts.Pod, remove func(*facts.Pod) error) func() error {
	switch lifecycle.BeforeDelete(p.Pod, f.Lifecycle) {
	case lifecycle.Prepare:
		return func() error { return r.SetState(ctx, f, p, kruise.LifecycleStatePreparingDelete, false) }
	case lifecycle.Go:
		return func() error { return remove(p) }
	}
	return nil
}

// deleteObject deletes this very pod: one of the same name that came after it is left
// alone. A pod that may go because it is not available is deleted only as it was seen: it
// may have become so since. A conflict says that there is another pod, or another version,
// or is the way in which a webhook refuses.
func (r *Round) deleteObject(ctx context.Context, f *Facts, p *facts.Pod) error {
	only := client.Preconditions{UID: &p.UID}
	if p.State != kruise.LifecycleStatePreparingDelete && !f.IsAvailable(p) {
		only.ResourceVersion = &p.ResourceVersion
	}
	err := r.c.Client.Delete(ctx, p.Pod, only)
	if apierrors.IsConflict(err) || reconcile.IsIndeterminate(err) {
		if _, gone := r.rereadPod(ctx, p.Pod); gone {
			return nil
		}
	}
	return client.IgnoreNotFound(err)
}
