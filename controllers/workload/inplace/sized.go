// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
)

// ResizeFailure is what keeps a node from giving a pod the resources that its spec asks for, in
// the words of the kubelet.
type ResizeFailure struct {
	// Reason is Infeasible if the node can never give them, Deferred if it cannot now,
	// Error if changing them failed, "" if it is under way.
	Reason string
	// Message is the kubelet's.
	Message string
}

// String is a sentence without its subject, which is the pod, for people.
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

// ResizeTrouble is what keeps the last update of a pod from completing that changed its
// resources; nil if the kubelet has told of nothing.
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

// resizeCondition is the condition by which the kubelet says that a resize is not done,
// nil if it says nothing of the kind. One that is pending goes ahead of an earlier one that
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

// pendingResizeReason says why the containers of a pod may not have the resources of its spec yet,
// "" if they have.
//
// The status tells the resources of each container. It is right about those of a new
// container. Of one that goes on running it may tell the old values indefinitely, since the
// kubelet repeats what it told before of all that the runtime does not report (containerd
// before 1.7, or a CPU limit without CFS quotas), and it may leave values out. A kubelet
// that names the generation it has seen says by its conditions when it is done.
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

// differingResources names the resources of a container of which its status tells other values.
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

// resourceMatches reports whether a list has the value of another, if that has one.
func resourceMatches(want, has corev1.ResourceList, name corev1.ResourceName) bool {
	w, wanted := want[name]
	h, ok := has[name]
	return !wanted || ok && w.Cmp(h) == 0
}
