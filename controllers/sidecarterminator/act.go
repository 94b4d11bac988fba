// SPDX-License-Identifier: Apache-2.0

package sidecarterminator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/restartrequest"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// conditionMessage is the message of the condition of a pod whose sidecars are ended, with any exit codes.
const conditionMessage = "Terminated by Sidecar Terminator"

// applyDecision carries out an answer. It returns when to reconcile the pod again, 0 if never.
func (r *Reconciler) applyDecision(ctx context.Context, pod *corev1.Pod, answer points.TerminationOutput) (time.Duration, error) {
	if len(answer.Images) > 0 {
		return 0, r.replaceImages(ctx, pod, answer.Images)
	}
	if answer.Phase != "" {
		if err := r.patchPhase(ctx, pod, corev1.PodPhase(answer.Phase)); err != nil {
			return 0, err
		}
	}
	if len(answer.Stop) == 0 {
		return 0, nil
	}
	return r.requestStop(ctx, pod, answer.Stop)
}

// replaceImages sets the images of containers on a virtual node to the ones that end them.
func (r *Reconciler) replaceImages(ctx context.Context, pod *corev1.Pod, images map[string]string) error {
	var containers []map[string]string
	names := slices.Sorted(maps.Keys(images))
	for _, name := range names {
		containers = append(containers, map[string]string{"name": name, "image": images[name]})
	}
	change := map[string]any{"spec": map[string]any{"containers": containers}}
	err := r.patchPod(pod, change, func(o *corev1.Pod, p client.Patch) error { return r.Client.Patch(ctx, o, p) })
	if err == nil {
		r.Events.Eventf(pod, corev1.EventTypeNormal, Reason, byImage, names)
	}
	return err
}

// patchPhase sets the phase of a pod by how its main containers ended. The kubelet does not change a phase in
// which a pod has ended.
func (r *Reconciler) patchPhase(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase) error {
	now := metav1.NewTime(r.Now())
	change := map[string]any{"status": map[string]any{
		"phase": phase,
		"conditions": []corev1.PodCondition{{
			Type: kruise.SidecarTerminatedConditionType, Status: corev1.ConditionTrue, Message: conditionMessage, LastProbeTime: now, LastTransitionTime: now,
		}},
	}}
	return r.patchPod(pod, change, func(o *corev1.Pod, p client.Patch) error { return r.Client.Status().Patch(ctx, o, p) })
}

// patchPod patches a pod, but not another pod that has the same name by now.
func (r *Reconciler) patchPod(pod *corev1.Pod, change map[string]any, write func(*corev1.Pod, client.Patch) error) error {
	change["metadata"] = map[string]any{"uid": pod.UID}
	raw, err := json.Marshal(change)
	if err == nil {
		o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		err = write(o, client.RawPatch(types.StrategicMergePatchType, raw))
	}
	if err != nil {
		return fmt.Errorf("ending the sidecars of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// requestStop requests the node to stop containers, and again if they still run after a request has ended. Sidecars whose exit
// code is ignored have a separate request if another request exists already. If neither request is about these containers, the
// first request that has ended is replaced. It returns when to reconcile the pod again.
func (r *Reconciler) requestStop(ctx context.Context, pod *corev1.Pod, names []string) (time.Duration, error) {
	var ended *kruise.ContainerRecreateRequest
	for _, suffix := range []string{"", "-ignored"} {
		name := kruise.SidecarTerminationRequestPrefix + string(pod.UID) + suffix
		existing := &kruise.ContainerRecreateRequest{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, existing)
		if apierrors.IsNotFound(err) {
			return restartrequest.PollInterval, r.createRequest(ctx, pod, newRequest(pod, name, names), names)
		}
		if err != nil {
			return 0, fmt.Errorf("reading ContainerRecreateRequest %s/%s: %w", pod.Namespace, name, err)
		}
		wait, due := restartrequest.NextTry(existing, r.Now())
		asked := slices.ContainsFunc(existing.Spec.Containers, func(c kruise.ContainerRecreateRequestContainer) bool { return slices.Contains(names, c.Name) })
		if asked && !due {
			return wait, nil
		}
		if due && (asked || ended == nil) {
			ended = existing
		}
		if asked {
			break
		}
	}
	if ended == nil { // neither request has ended
		return restartrequest.PollInterval, nil
	}
	next := newRequest(pod, ended.Name, names)
	if err := restartrequest.ReplaceEnded(ctx, r.Client, ended, next); err != nil {
		return 0, err
	}
	return restartrequest.PollInterval, r.createRequest(ctx, pod, next, names)
}

func newRequest(pod *corev1.Pod, name string, containers []string) *kruise.ContainerRecreateRequest {
	o := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: name,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
	}}
	o.Spec.PodName = pod.Name
	o.Spec.Strategy = &kruise.ContainerRecreateRequestStrategy{FailurePolicy: kruise.ContainerRecreateRequestFailurePolicyIgnore, ForceRecreate: true}
	for _, c := range containers {
		o.Spec.Containers = append(o.Spec.Containers, kruise.ContainerRecreateRequestContainer{Name: c})
	}
	return o
}

func (r *Reconciler) createRequest(ctx context.Context, pod *corev1.Pod, o *kruise.ContainerRecreateRequest, containers []string) error {
	if err := r.Client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating ContainerRecreateRequest %s/%s: %w", pod.Namespace, o.Name, err)
	}
	r.Events.Eventf(pod, corev1.EventTypeNormal, Reason, byRequest, containers)
	return nil
}
