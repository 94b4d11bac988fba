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

// RecordWrite records a pod as it was written, so that the next round uses it even if the cache
// is older; nil if it was not written. An act that failed half-way may have written too. If the
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

// rereadPod reads a pod past the cache. gone is true if the pod does not exist any more, or
// terminates. If the API server does not answer, it returns nil and false.
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

// SetState brings a pod to a lifecycle state. rehook restores the marks of its hook first.
func (r *Round) SetState(ctx context.Context, f *Facts, p *facts.Pod, state kruise.LifecycleStateType, rehook bool) error {
	pod, err := r.c.states.MoveToState(ctx, p.Pod, state, f.Lifecycle, rehook)
	r.RecordWrite(ctx, p.Pod, pod, err)
	return err
}

// TakenError is the error of a pod that cannot be created because a pod with its name exists, which has another
// owner or terminates.
type TakenError struct {
	// By is the pod that has the name.
	By  *corev1.Pod
	Err error
}

func (e *TakenError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *TakenError) Unwrap() error { return e.Err }

// CreatePod creates a pod, and opens its readiness gates unless its lifecycle state
// waits for a node. If a pod with the name exists and the workload owns it, it counts as created: the answer to an earlier
// attempt was lost, or the cache does not show it yet.
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

// openNew opens the readiness gates of a new pod. If its kubelet sees the pod
// only after that, it writes the readiness once. Otherwise it writes it again when a gate is opened
// after its first status. If the write fails, a later round opens the gates, once the pod
// has a node. A later round also does that for a pod whose state changes when it has a node, in one write.
func (r *Round) openNew(ctx context.Context, pod *corev1.Pod) {
	if lifecycle.PodState(pod) == kruise.LifecycleStatePreparingNormal || !inplace.WantsReady(pod) {
		return
	}
	if opened, err := r.c.updater.MarkReady(ctx, pod, nil); err == nil {
		opened.DeepCopyInto(pod)
	}
}

// RecordCreated records a pod that was created, with an event.
func (r *Round) RecordCreated(pod *corev1.Pod) {
	r.c.overlay.RecordCreated(r.Workload.GetUID(), pod)
	r.created.addPod(pod)
	r.RecordNormal(kruise.SuccessfulCreateReason, r.c.typ.Events.Created(r.Workload.GetName(), pod.Name))
}

// DeletePod deletes a pod and records an event.
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

// LetGo deletes pods by a function of the kind. If a hook holds a pod, it sets the pod to PreparingDelete
// and waits for the hook. It reports whether it wrote.
func (r *Round) LetGo(ctx context.Context, f *Facts, pods []*facts.Pod, remove func(*facts.Pod) error) (acted bool, err error) {
	var acts []func() error
	for _, p := range pods {
		if act := r.letGo(ctx, f, p, remove); act != nil {
			acts = append(acts, act)
		}
	}
	return len(acts) > 0, r.RunParallel(acts)
}

// LetOneGo does the same for one pod. It is for moves, which run in parallel already: an
// act of RunParallel may not wait for another one.
func (r *Round) LetOneGo(ctx context.Context, f *Facts, p *facts.Pod, remove func(*facts.Pod) error) error {
	if act := r.letGo(ctx, f, p, remove); act != nil {
		return act()
	}
	return nil
}

// letGo returns the next write for the deletion of a pod, nil while a hook holds the pod.
func (r *Round) letGo(ctx context.Context, f *Facts, p *facts.Pod, remove func(*facts.Pod) error) func() error {
	switch lifecycle.BeforeDelete(p.Pod, f.Lifecycle) {
	case lifecycle.Prepare:
		return func() error { return r.SetState(ctx, f, p, kruise.LifecycleStatePreparingDelete, false) }
	case lifecycle.Go:
		return func() error { return remove(p) }
	}
	return nil
}

// deleteObject deletes the pod with this UID, not a later pod with the same name.
// If a pod may be deleted because it is not available, its resource version is a precondition: it
// may have become available since. A conflict means that another pod or version exists,
// or that a webhook refuses the deletion.
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
