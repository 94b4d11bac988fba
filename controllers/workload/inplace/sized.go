// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
)

// ResizeFailure is what prevents a node from giving a pod the resources in its spec, as
// the kubelet reports it.
type ResizeFailure struct {
	// Reason is Infeasible if the node can never provide the resources, Deferred if it cannot now,
	// Error if changing them failed, "" if the resize is under way.
	Reason string
	// Message is the message of the kubelet.
	Message string
}

// String returns a sentence for users, without its subject, the pod.
func (t ResizeFailure) String() string {
	switch t.Reason {
	case "":
		return "its node is changing its resources"
	case corev1.PodReasonDeferred:
		return fmt.Sprintf("its node cannot give it its new resources now (%s): %s", t.Reason, t.Message)
	case corev1.PodReasonError:
		return fmt.Sprintf("its node failed to give it its new resources (%s): %s", t.Reason, t.Message)
	}
	return fmt.Sprintf("its node cannot give it its new resources (%s): %s", t.Reason, t.Message)
}

// ResizeTrouble returns what prevents the last update that changed resources of a pod from
// completing; nil if the kubelet has reported nothing.
func ResizeTrouble(pod *corev1.Pod) *ResizeFailure {
	s, err := DecodeState(pod)
	if err != nil || s == nil || !s.UpdateResources || InGrace(pod) || isStatusStale(pod) {
		return nil
	}
	c := resizeCondition(pod)
	if c == nil || c.Reason == "" {
		return nil
	}
	t := troubleOf(c)
	return &t
}

func troubleOf(c *corev1.PodCondition) ResizeFailure {
	return ResizeFailure{Reason: c.Reason, Message: c.Message}
}

// resizeCondition returns the condition with which the kubelet reports that a resize is not complete,
// nil if there is none. A pending resize takes precedence over an earlier one that
// is under way.
func resizeCondition(pod *corev1.Pod) *corev1.PodCondition {
	for _, t := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		if c := FindCondition(pod, t); c != nil && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// hasPendingResize reports whether an earlier update has changed resources of the pod that its
// containers do not have yet. The next update waits for them too.
func hasPendingResize(pod *corev1.Pod) bool {
	s, err := DecodeState(pod)
	return err == nil && s != nil && s.UpdateResources && pendingResizeReason(pod) != ""
}

// pendingResizeReason returns why the containers of a pod may not have the resources of its spec yet,
// "" if they have.
//
// The status reports the resources of each container, and is correct for a new
// container. For a container that keeps running it may report the old values indefinitely: the
// kubelet repeats earlier values if the runtime does not report them (containerd
// before 1.7, or a CPU limit without CFS quotas). It may also omit values. A kubelet
// that reports the observed generation reports with its conditions when the resize is complete.
func pendingResizeReason(pod *corev1.Pod) string {
	if isStatusStale(pod) {
		return "the kubelet has not seen the new resources yet"
	}
	if c := resizeCondition(pod); c != nil {
		return troubleOf(c).String()
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		st := statusOf(pod, c.Name)
		if st == nil {
			return fmt.Sprintf("container %s has no status", c.Name)
		}
		if containerstatus.HasEnded(pod, c.Name) {
			continue
		}
		for _, name := range differingResources(c, st) {
			if restartsFor(c, name) || pod.Status.ObservedGeneration == 0 {
				return fmt.Sprintf("container %s does not have its new resources yet", c.Name)
			}
		}
	}
	return ""
}

// differingResources returns the resources of a container for which its status reports other values.
func differingResources(c *corev1.Container, st *corev1.ContainerStatus) (out []corev1.ResourceName) {
	has := corev1.ResourceRequirements{}
	if st.Resources != nil {
		has = *st.Resources
	}
	for _, name := range sizes {
		if !resourceMatches(c.Resources.Limits, has.Limits, name) || !resourceMatches(c.Resources.Requests, has.Requests, name) {
			out = append(out, name)
		}
	}
	return out
}

// resourceMatches reports whether has contains the value of want for a resource, if want has one.
func resourceMatches(want, has corev1.ResourceList, name corev1.ResourceName) bool {
	w, wanted := want[name]
	h, ok := has[name]
	return !wanted || ok && w.Cmp(h) == 0
}
