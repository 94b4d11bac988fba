// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
)

// finalizer keeps a request until its pod is back in its services.
const finalizer = kruise.ContainerRecreateRequestUnreadyAcquiredKey

// readinessKey is the key that keeps the pod of a request not ready.
func readinessKey(request *kruise.ContainerRecreateRequest) kruise.PodReadinessMessage {
	return kruise.PodReadinessMessage{
		UserAgent: kruise.ContainerRecreateRequestReadinessUserAgent, Key: request.Namespace + "/" + request.Name,
	}
}

// markPodNotReady is CRR-03: it takes the pod out of its services, and returns the condition to write
// after that.
func (r *Reconciler) markPodNotReady(ctx context.Context, request *kruise.ContainerRecreateRequest, pod *corev1.Pod) (*condition.Condition, error) {
	if s := request.Spec.Strategy; s == nil || s.UnreadyGracePeriodSeconds == nil ||
		meta.FindStatusCondition(request.Status.Conditions, kruise.ContainerRecreateRequestPreRecreateGrace) != nil {
		return nil, nil
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if gate.ConditionType != kruise.KruisePodReady {
			continue
		}
		if !controllerutil.ContainsFinalizer(request, finalizer) {
			before := request.DeepCopy()
			controllerutil.AddFinalizer(request, finalizer)
			if err := r.Client.Patch(ctx, request, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
				return nil, fmt.Errorf("adding finalizer %s: %w", finalizer, err)
			}
		}
		if _, err := (lifecycle.Writer{Client: r.Client, Now: r.Now}).SetKey(ctx, pod.DeepCopy(), readinessKey(request), true); err != nil {
			return nil, err
		}
	}
	return &condition.Condition{
		Type: kruise.ContainerRecreateRequestPreRecreateGrace, Status: metav1.ConditionTrue,
		Reason: kruise.ContainerRecreateRequestPreRecreateGraceReason, Message: kruise.ContainerRecreateRequestPreRecreateGraceMessage,
	}, nil
}

// graceTimeLeft is how long the pod of a request still has to leave its services (CRR-07), by the
// clock of the managers: the clock of the node may differ.
func graceTimeLeft(request *kruise.ContainerRecreateRequest, now time.Time) time.Duration {
	c := meta.FindStatusCondition(request.Status.Conditions, kruise.ContainerRecreateRequestPreRecreateGrace)
	if s := request.Spec.Strategy; c == nil || s == nil || s.UnreadyGracePeriodSeconds == nil {
		return 0
	}
	return c.LastTransitionTime.Add(time.Duration(*request.Spec.Strategy.UnreadyGracePeriodSeconds) * time.Second).Sub(now)
}

// finalizeRequest is CRR-05: the pod returns to its services, the agent no longer sees the request,
// and the request is deleted when its time to live is over.
func (r *Reconciler) finalizeRequest(ctx context.Context, request *kruise.ContainerRecreateRequest, pod *corev1.Pod) (time.Duration, error) {
	if pod != nil && inplace.FindCondition(pod, kruise.KruisePodReady) != nil {
		if _, err := (lifecycle.Writer{Client: r.Client, Now: r.Now}).SetKey(ctx, pod.DeepCopy(), readinessKey(request), false); client.IgnoreNotFound(err) != nil {
			return 0, err
		}
	}
	_, active := request.Labels[kruise.ContainerRecreateRequestActiveKey]
	if active || controllerutil.ContainsFinalizer(request, finalizer) {
		before := request.DeepCopy()
		delete(request.Labels, kruise.ContainerRecreateRequestActiveKey)
		controllerutil.RemoveFinalizer(request, finalizer)
		if err := r.Client.Patch(ctx, request, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return 0, fmt.Errorf("releasing ContainerRecreateRequest %s: %w", client.ObjectKeyFromObject(request), err)
		}
	}
	ttl := request.Spec.TTLSecondsAfterFinished
	if request.DeletionTimestamp != nil || ttl == nil || request.Status.CompletionTime == nil {
		return 0, nil
	}
	if left := request.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(r.Now()); left > 0 {
		return left, nil
	}
	err := r.Client.Delete(ctx, request, client.Preconditions{UID: &request.UID, ResourceVersion: &request.ResourceVersion})
	if err != nil {
		return 0, fmt.Errorf("deleting ContainerRecreateRequest %s, whose time is over: %w", client.ObjectKeyFromObject(request), err)
	}
	return 0, nil
}
