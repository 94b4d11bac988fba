// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

const (
	// responseTime is how long the agent has to respond to a new request.
	responseTime = 60 * time.Second
	// lookAgain is how soon a request in progress is reconciled again.
	lookAgain = 3 * time.Second
	// pendingAgain is how soon a request that waits for another request of its pod is reconciled again: no event reports that
	// its node agent is gone.
	pendingAgain = time.Minute
)

// isFinished reports whether nothing more is done for a request.
func isFinished(r *kruise.ContainerRecreateRequest) bool {
	switch r.Status.Phase {
	case "", kruise.ContainerRecreateRequestPending, kruise.ContainerRecreateRequestRecreating:
		return r.Status.CompletionTime != nil
	}
	return true
}

// reportFailure records in the status of a request that its reconciles fail. After a round that succeeded it brings the conditions of package
// kstatus up to date with what the node has written.
func (r *Reconciler) reportFailure(ctx context.Context, request *kruise.ContainerRecreateRequest, cause error) error {
	if request.Status.Phase == "" { // the schema takes no status without a phase, which its node writes first
		failure.RecordFailure(r.Events, request, cause)
		return nil
	}
	before := request.DeepCopy()
	if cause != nil {
		failure.SetCondition(&request.Status, cause, request.Generation, r.Now())
	} else {
		failure.SetSummary(&request.Status, judgeRequest(&request.Status), request.Generation, r.Now())
	}
	if equality.Semantic.DeepEqual(before.Status, request.Status) {
		return nil
	}
	err := r.Client.Status().Patch(ctx, request, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if cause != nil && apierrors.IsConflict(err) { // the next reconcile reports it
		return nil
	}
	return client.IgnoreNotFound(err)
}

// reconcileRequest is CRR-02. It returns when to reconcile again; 0 for when something changes.
func (r *Reconciler) reconcileRequest(ctx context.Context, request *kruise.ContainerRecreateRequest) (time.Duration, error) {
	pod, err := r.getPod(ctx, request)
	if err != nil {
		return 0, err
	}
	if isFinished(request) || request.DeletionTimestamp != nil {
		return r.finalizeRequest(ctx, request, pod)
	}
	if pod == nil || pod.DeletionTimestamp != nil || string(pod.UID) != request.Labels[kruise.ContainerRecreateRequestPodUIDKey] {
		return 0, r.completeRequest(ctx, request, kruise.ContainerRecreateRequestPodGoneMessage)
	}
	if sidecarsEnded(request, pod) {
		return 0, r.succeedRequest(ctx, request)
	}
	age := r.Now().Sub(request.CreationTimestamp.Time)
	if request.Status.Phase == "" && age >= responseTime {
		return 0, r.completeRequest(ctx, request, kruise.ContainerRecreateRequestNoResponseMessage)
	}
	after := time.Duration(0)
	if s := request.Spec.ActiveDeadlineSeconds; s != nil {
		if after = time.Duration(*s)*time.Second - age; after <= 0 {
			return 0, r.completeRequest(ctx, request, kruise.ContainerRecreateRequestDeadlineExceededMessage)
		}
	}
	if request.Status.Phase != "" {
		if wait, err := r.awaitAgent(ctx, request, pod); err != nil || wait > 0 || isFinished(request) {
			return requeue.EarliestDelay(after, wait), err
		}
	}
	switch request.Status.Phase {
	case kruise.ContainerRecreateRequestRecreating:
		wait, err := r.reconcileRecreating(ctx, request, pod)
		if err != nil {
			return requeue.EarliestDelay(after, wait), err
		}
		return requeue.EarliestDelay(requeue.EarliestDelay(after, lookAgain), wait), nil
	case "":
		return requeue.EarliestDelay(after, responseTime-age), nil
	}
	return requeue.EarliestDelay(after, pendingAgain), nil
}

// reconcileRecreating is one reconcile of a request that its node works on. wait is how long the pod
// still has to leave its services.
func (r *Reconciler) reconcileRecreating(ctx context.Context, request *kruise.ContainerRecreateRequest, pod *corev1.Pod) (wait time.Duration, err error) {
	if states, changed := settleEnded(request, pod); changed { // the agent completes the request by these states
		return 0, r.patchStatus(ctx, request, func(s *kruise.ContainerRecreateRequestStatus) { s.ContainerRecreateStates = states })
	}
	graced, err := r.markPodNotReady(ctx, request, pod)
	wait = max(graceTimeLeft(request, r.Now()), 0)
	if err != nil {
		return wait, err
	}
	now := snapshotStatuses(request, pod)
	snapped := !slices.Equal(now, request.Status.ContainerStatusSnapshot) && (len(now) > 0 || len(request.Status.ContainerStatusSnapshot) == 0)
	if graced != nil || snapped {
		err := r.patchStatus(ctx, request, func(s *kruise.ContainerRecreateRequestStatus) {
			if graced != nil {
				condition.SetCondition(s, *graced, 0, metav1.NewTime(r.Now()))
			}
			if snapped {
				s.ContainerStatusSnapshot = now
			}
		})
		if err != nil {
			return wait, err
		}
	}
	if wait = graceTimeLeft(request, r.Now()); wait > 0 {
		return wait, nil
	}
	return 0, r.decideRestarts(ctx, request, pod)
}

// snapshotStatuses is CRR-04: it returns what the pod reports of containers that have started since
// the request. A run that differs from the one in the request is such a one, whatever the clock of its
// node says.
func snapshotStatuses(request *kruise.ContainerRecreateRequest, pod *corev1.Pod) []kruise.ContainerStatusSnapshot {
	var out []kruise.ContainerStatusSnapshot
	for i := range request.Spec.Containers {
		status, asked := statusOf(pod, request.Spec.Containers[i].Name), request.Spec.Containers[i].StatusContext
		if status == nil || status.State.Running == nil {
			continue
		}
		if another := asked != nil && status.ContainerID != asked.ContainerID; !another && status.State.Running.StartedAt.Time.Before(request.CreationTimestamp.Time) {
			continue
		}
		out = append(out, kruise.ContainerStatusSnapshot{
			Name: status.Name, Ready: status.Ready, RestartCount: status.RestartCount, ContainerID: status.ContainerID,
		})
	}
	return out
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == container })
	if i < 0 {
		return nil
	}
	return &pod.Status.ContainerStatuses[i]
}

// getPod reads the pod of a request, nil if it is gone. If the cache does not have the pod, the API
// server is read.
func (r *Reconciler) getPod(ctx context.Context, request *kruise.ContainerRecreateRequest) (*corev1.Pod, error) {
	key := types.NamespacedName{Namespace: request.Namespace, Name: request.Spec.PodName}
	pod := &corev1.Pod{}
	err := r.Client.Get(ctx, key, pod)
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, key, pod)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", key, err)
	}
	return pod, nil
}

// completeRequest ends a request that its node did not end. Containers that have not finished have failed.
func (r *Reconciler) completeRequest(ctx context.Context, request *kruise.ContainerRecreateRequest, why string) error {
	why = message.Shorten(why)
	return r.patchStatus(ctx, request, func(s *kruise.ContainerRecreateRequestStatus) {
		now := metav1.NewTime(r.Now())
		s.Phase, s.CompletionTime, s.Message = kruise.ContainerRecreateRequestCompleted, &now, why
		for i := range request.Spec.Containers {
			name := request.Spec.Containers[i].Name
			at := slices.IndexFunc(s.ContainerRecreateStates, func(c kruise.ContainerRecreateRequestContainerRecreateState) bool { return c.Name == name })
			if at < 0 {
				s.ContainerRecreateStates = append(s.ContainerRecreateStates, kruise.ContainerRecreateRequestContainerRecreateState{Name: name})
				at = len(s.ContainerRecreateStates) - 1
			}
			if c := &s.ContainerRecreateStates[at]; c.Phase != kruise.ContainerRecreateRequestSucceeded && c.Phase != kruise.ContainerRecreateRequestFailed {
				c.Phase, c.Message = kruise.ContainerRecreateRequestFailed, why
			}
		}
	})
}

// sidecarsEnded reports whether a request to end sidecars is fulfilled: only such requests are for
// containers that do not start again.
func sidecarsEnded(request *kruise.ContainerRecreateRequest, pod *corev1.Pod) bool {
	if !strings.HasPrefix(request.Name, kruise.SidecarTerminationRequestPrefix) || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return false
	}
	return !slices.ContainsFunc(request.Spec.Containers, func(c kruise.ContainerRecreateRequestContainer) bool { return !containerstatus.HasEnded(pod, c.Name) })
}

// succeedRequest ends a request whose containers have ended for good.
func (r *Reconciler) succeedRequest(ctx context.Context, request *kruise.ContainerRecreateRequest) error {
	return r.patchStatus(ctx, request, func(s *kruise.ContainerRecreateRequestStatus) {
		now := metav1.NewTime(r.Now())
		s.Phase, s.CompletionTime = kruise.ContainerRecreateRequestCompleted, &now
		killed := map[string]bool{}
		for _, c := range s.ContainerRecreateStates {
			killed[c.Name] = c.IsKilled
		}
		s.ContainerRecreateStates = nil
		for i := range request.Spec.Containers {
			name := request.Spec.Containers[i].Name
			s.ContainerRecreateStates = append(s.ContainerRecreateStates, kruise.ContainerRecreateRequestContainerRecreateState{
				Name: name, Phase: kruise.ContainerRecreateRequestSucceeded, IsKilled: killed[name],
			})
		}
	})
}

// patchStatus patches the status of a request, and updates the request from the response. It is a
// patch since the agent writes the status too.
func (r *Reconciler) patchStatus(ctx context.Context, request *kruise.ContainerRecreateRequest, change func(*kruise.ContainerRecreateRequestStatus)) error {
	before := request.DeepCopy()
	change(&request.Status)
	r.summarizeRequest(request)
	if err := r.Client.Status().Patch(ctx, request, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		request.Status = before.Status // the report compares with what is stored
		return fmt.Errorf("writing the status of ContainerRecreateRequest %s: %w", client.ObjectKeyFromObject(request), err)
	}
	return nil
}
