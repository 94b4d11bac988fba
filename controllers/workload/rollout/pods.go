// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
)

// Wrote notes a pod as it was written, so that the next round sees it so whatever the
// cache says; nil if it was not. An act that fails half-way has written too. Where the
// error leaves open whether a write was done, the pod is read.
func (r *Round) Wrote(ctx context.Context, was, pod *corev1.Pod, err error) {
	uid := r.Workload.GetUID()
	if pod != nil {
		r.c.overlay.Patched(uid, pod)
	}
	if !Indeterminate(err) {
		return
	}
	if found, gone := r.reread(ctx, was); found != nil && !gone {
		r.c.overlay.Patched(uid, found)
	}
}

// reread reads a pod past the cache. gone is true when it is not there any more, or
// terminates; where the API server does not answer, both are nothing.
func (r *Round) reread(ctx context.Context, was *corev1.Pod) (found *corev1.Pod, gone bool) {
	found = &corev1.Pod{}
	err := r.c.live.Get(ctx, client.ObjectKeyFromObject(was), found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true
	case err != nil:
		return nil, false
	}
	return found, found.UID != was.UID || found.DeletionTimestamp != nil
}

// Indeterminate says whether an error leaves open if a write was done: there was no
// answer, or one that the API server failed half-way.
func Indeterminate(err error) bool {
	if err == nil {
		return false
	}
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

// SetState brings a pod to a lifecycle state. rehook has its hook asked once more.
func (r *Round) SetState(ctx context.Context, f *Facts, p *facts.Pod, state kruise.LifecycleStateType, rehook bool) error {
	pod, err := r.c.states.Move(ctx, p.Pod, state, f.Lifecycle, rehook)
	r.Wrote(ctx, p.Pod, pod, err)
	return err
}

// Created notes a pod that was created and opens its readiness gate at once, so that it
// is ready as soon as its containers are. Should that fail, the next round does it.
func (r *Round) Created(ctx context.Context, pod *corev1.Pod) {
	r.c.overlay.Created(r.Workload.GetUID(), pod)
	r.Normal(kruise.SuccessfulCreateReason, fmt.Sprintf(kruise.SuccessfulCreateMessage, pod.Name))
	if ready, err := r.c.updater.MarkCreated(ctx, pod); err == nil {
		r.Wrote(ctx, pod, ready, nil)
	}
}

// DeletePod deletes a pod and tells it by an event.
func (r *Round) DeletePod(ctx context.Context, f *Facts, p *facts.Pod) error {
	if err := r.deleteObject(ctx, f, p); err != nil {
		if !Conflict(err) {
			r.Warn(kruise.FailedDeleteReason, fmt.Sprintf("failed to delete pod %s: %v", p.Name, err))
		}
		return fmt.Errorf("deleting pod %s: %w", p.Name, err)
	}
	r.c.overlay.Deleted(r.Workload.GetUID(), p.Pod)
	r.Normal(kruise.SuccessfulDeleteReason, fmt.Sprintf(kruise.SuccessfulDeleteMessage, p.Name))
	return nil
}

// deleteObject deletes this very pod: one of the same name that came after it is left
// alone. A pod that may go because it is not available is deleted only as it was seen: it
// may have become so since. A conflict says that there is another pod, or another version,
// or is the way in which a webhook refuses.
func (r *Round) deleteObject(ctx context.Context, f *Facts, p *facts.Pod) error {
	only := client.Preconditions{UID: &p.UID}
	if p.State != kruise.LifecycleStatePreparingDelete && !f.Available(p) {
		only.ResourceVersion = &p.ResourceVersion
	}
	err := r.c.client.Delete(ctx, p.Pod, only)
	if apierrors.IsConflict(err) || Indeterminate(err) {
		if _, gone := r.reread(ctx, p.Pod); gone {
			return nil
		}
	}
	return client.IgnoreNotFound(err)
}
