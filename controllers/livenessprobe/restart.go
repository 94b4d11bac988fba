// SPDX-License-Identifier: Apache-2.0

package livenessprobe

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/agents"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/restartrequest"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
)

const (
	// UnhealthyReason is the reason of an event about a container that is to restart.
	UnhealthyReason = "Unhealthy"
	// ConditionType is the condition of a pod that reports whether its liveness probes are run.
	ConditionType corev1.PodConditionType = "LivenessProbesRun"
	// AgentMissingReason is the reason of the condition while the node has no agent.
	AgentMissingReason = "NodeAgentMissing"
	// keep is for how many seconds a request is kept after it has ended.
	keep = 600
)

// requestRestarts requests the restart of containers whose probes have failed, and withdraws the request if the
// probe succeeds again before the restart. It returns when to reconcile the pod again, 0 for at the next result.
// An error about one container does not prevent the restart of others.
func (r *Reconciler) requestRestarts(ctx context.Context, pod *corev1.Pod, saved []Saved) (after time.Duration, err error) {
	o := &v1alpha1.NodePodProbe{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, o); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	var failed []error
	for i := range saved {
		state := stateOf(o, string(pod.UID), ProbeName(saved[i].Name))
		status := runningStatus(pod, saved[i].Name)
		if state == nil || status == nil {
			continue
		}
		var (
			wait time.Duration
			err  error
		)
		switch state.State {
		case v1alpha1.ProbeFailed:
			// A result of an earlier run of the container says nothing about the current run, which is probed
			// after a second at the earliest. Both times are in whole seconds.
			if state.LastProbeTime != nil && state.LastProbeTime.After(status.State.Running.StartedAt.Time) {
				wait, err = r.requestRestart(ctx, pod, &saved[i], status, state)
			}
		case v1alpha1.ProbeSucceeded:
			err = r.takeBack(ctx, pod, status)
		}
		failed = append(failed, err)
		after = requeue.EarliestDelay(after, wait)
	}
	return after, message.JoinErrors(failed...)
}

// runningStatus is the status of a container that runs, nil if it does not run: the kubelet starts
// such a container again by itself.
func runningStatus(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == name && s.State.Running != nil && s.ContainerID != "" {
			return s
		}
	}
	return nil
}

// requestName is the name of the request for one run of one container: a run is restarted once for all its
// failures.
func requestName(pod *corev1.Pod, status *corev1.ContainerStatus) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(pod.UID) + "/" + status.Name + "/" + status.ContainerID)) // a hash takes all
	return fmt.Sprintf("%s-liveness-%x", pod.Name[:min(len(pod.Name), 200)], h.Sum64())
}

// requestRestart requests the restart of a container, and again if the same run of it still fails after a request has
// ended. It returns when to reconcile the pod again.
func (r *Reconciler) requestRestart(ctx context.Context, pod *corev1.Pod, saved *Saved, status *corev1.ContainerStatus, state *v1alpha1.ContainerProbeState) (time.Duration, error) {
	key := client.ObjectKey{Namespace: pod.Namespace, Name: requestName(pod, status)}
	next := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{kruise.LivenessRequestKey: status.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
	}}
	next.Spec.PodName = pod.Name
	next.Spec.TTLSecondsAfterFinished = ptr.To[int32](keep)
	next.Spec.Containers = []kruise.ContainerRecreateRequestContainer{{Name: status.Name}}
	next.Spec.Strategy = &kruise.ContainerRecreateRequestStrategy{
		FailurePolicy: kruise.ContainerRecreateRequestFailurePolicyFail, TerminationGracePeriodSeconds: saved.LivenessProbe.TerminationGracePeriodSeconds,
	}
	existing := &kruise.ContainerRecreateRequest{}
	switch err := r.Client.Get(ctx, key, existing); {
	case err == nil:
		if wait, due := restartrequest.NextTry(existing, r.Now()); !due {
			return wait, nil
		}
		if err := restartrequest.ReplaceEnded(ctx, r.Client, existing, next); err != nil {
			return 0, err
		}
	case !apierrors.IsNotFound(err):
		return 0, fmt.Errorf("reading ContainerRecreateRequest %s: %w", key, err)
	}
	if err := r.Client.Create(ctx, next); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return restartrequest.PollInterval, nil
		}
		return 0, fmt.Errorf("creating ContainerRecreateRequest %s: %w", key, err)
	}
	r.Events.Eventf(pod, corev1.EventTypeWarning, UnhealthyReason, "Liveness probe failed: %s; container %s is restarted by ContainerRecreateRequest %s", state.Message, status.Name, key.Name)
	return restartrequest.PollInterval, nil
}

// takeBack deletes the request of a container whose probe succeeds again. A request that the node is
// already permitted to carry out stays: the restart may have begun.
func (r *Reconciler) takeBack(ctx context.Context, pod *corev1.Pod, status *corev1.ContainerStatus) error {
	o := &kruise.ContainerRecreateRequest{}
	key := client.ObjectKey{Namespace: pod.Namespace, Name: requestName(pod, status)}
	if err := r.Client.Get(ctx, key, o); err != nil {
		return client.IgnoreNotFound(err)
	}
	if permits, err := permit.ReadPermits(o); err != nil || len(permits) > 0 || o.Status.CompletionTime != nil || o.DeletionTimestamp != nil {
		return nil
	}
	err := r.Client.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ContainerRecreateRequest %s, whose container is well again: %w", key, err)
	}
	return nil
}

// updateProbeCondition sets the condition of a pod to False when no agent runs its probes. It sets the
// condition to True only for pods whose condition was False.
func (r *Reconciler) updateProbeCondition(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	there, err := r.agentOf(ctx, pod.Spec.NodeName)
	if err != nil {
		return 0, err
	}
	left := r.absences.RemainingGrace(pod.Spec.NodeName, there)
	was := inplace.FindCondition(pod, ConditionType)
	next := corev1.PodCondition{Type: ConditionType, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(r.Now())}
	switch {
	case there && (was == nil || was.Status == corev1.ConditionTrue):
		return 0, nil
	case !there && was != nil && was.Status == corev1.ConditionFalse:
		return 0, nil
	case !there:
		if left > 0 {
			return left, nil
		}
		next.Status, next.Reason = corev1.ConditionFalse, AgentMissingReason
		next.Message = message.Shorten(fmt.Sprintf("No node agent is ready on node %s, so the liveness probes of this pod are not run.", pod.Spec.NodeName))
	}
	condition := map[string]any{"type": next.Type, "status": next.Status, "lastTransitionTime": next.LastTransitionTime, "reason": nil, "message": nil}
	if next.Reason != "" {
		condition["reason"], condition["message"] = next.Reason, next.Message
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": map[string]any{"conditions": []any{condition}}})
	if err != nil {
		return 0, fmt.Errorf("writing condition %s: %w", ConditionType, err)
	}
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := r.Client.Status().Patch(ctx, o, client.RawPatch(types.StrategicMergePatchType, raw)); err != nil {
		return 0, fmt.Errorf("writing condition %s: %w", ConditionType, err)
	}
	if !there {
		r.Events.Event(pod, corev1.EventTypeWarning, AgentMissingReason, next.Message)
	}
	return 0, nil
}

// agentOf reports whether a node has an agent that is ready.
func (r *Reconciler) agentOf(ctx context.Context, node string) (bool, error) {
	pods, err := agents.PodsOnNode(ctx, r.Client, r.namespace, node)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return availability.IsRunningAndReady(&p) }), nil
}
