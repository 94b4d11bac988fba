// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// sizedPod is a pod in the middle of a resize to two CPUs, whose status tells some
// resources of its container.
func sizedPod(tells *corev1.ResourceRequirements, edits ...func(*corev1.Pod)) *corev1.Pod {
	return updating(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = cpus("2")
		p.Status.ContainerStatuses[0].Resources = tells
		for _, edit := range edits {
			edit(p)
		}
	}, func(s *kruise.InPlaceUpdateState) { s.UpdateResources, s.LastContainerStatuses = true, nil })
}

func cpus(q string) corev1.ResourceRequirements {
	list := corev1.ResourceList{"cpu": resource.MustParse(q)}
	return corev1.ResourceRequirements{Limits: list, Requests: list}
}

func told(t corev1.PodConditionType, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	}
}

func oldKubelet(p *corev1.Pod) { p.Status.ObservedGeneration = 0 }

func restartsForCPU(p *corev1.Pod) {
	p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: corev1.RestartContainer}}
}

func TestWhenAContainerHasItsNewResources(t *testing.T) {
	one, two, same, more := cpus("1"), cpus("2"), cpus("2000m"), cpus("2")
	more.Limits = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")}
	const no, old, never = "cannot give it its new resources", "does not have its new resources yet", "has not seen the new resources yet"
	tests := map[string]struct {
		pod *corev1.Pod
		why string // "" for complete
	}{
		"the new ones":                                       {sizedPod(&two), ""},
		"the new ones in other words":                        {sizedPod(&same), ""},
		"more than the spec has":                             {sizedPod(&more), ""},
		"the new ones, by an old kubelet":                    {sizedPod(&two, oldKubelet), ""},
		"the old ones, by an old kubelet":                    {sizedPod(&one, oldKubelet), old},
		"none, by an old kubelet":                            {sizedPod(nil, oldKubelet), old},
		"none, by a kubelet that has no more to do":          {sizedPod(nil), ""},
		"the old ones, by a kubelet that has no more to do":  {sizedPod(&one), ""},
		"the old ones, and the container has yet to restart": {sizedPod(&one, restartsForCPU), old},
		"the new ones, and the container has restarted":      {sizedPod(&two, restartsForCPU), ""},
		"the old ones, and the kubelet has not seen the spec": {sizedPod(&one, func(p *corev1.Pod) {
			p.Status.ObservedGeneration = 1
		}), never},
		"the new ones of a change that was undone, and the kubelet has not seen that": {sizedPod(&two, func(p *corev1.Pod) {
			p.Status.ObservedGeneration = 1
		}), never},
		"the node can never give them":         {sizedPod(&one, told(corev1.PodResizePending, corev1.PodReasonInfeasible, "too much")), no + " (Infeasible): too much"},
		"the node cannot give them now":        {sizedPod(&one, told(corev1.PodResizePending, corev1.PodReasonDeferred, "full")), no + " now (Deferred): full"},
		"an old kubelet cannot give them now":  {sizedPod(&one, oldKubelet, told(corev1.PodResizePending, corev1.PodReasonDeferred, "full")), no + " now (Deferred): full"},
		"the node is at it":                    {sizedPod(&one, told(corev1.PodResizeInProgress, "", "")), "is changing its resources"},
		"the node is at it, and tells the new": {sizedPod(&two, told(corev1.PodResizeInProgress, "", "")), "is changing its resources"},
		"changing them failed":                 {sizedPod(&one, told(corev1.PodResizeInProgress, corev1.PodReasonError, "busy")), "failed to give it its new resources (Error): busy"},
		"one is under way, the next one waits": {sizedPod(&one, told(corev1.PodResizeInProgress, "", ""), told(corev1.PodResizePending, corev1.PodReasonDeferred, "full")), "now (Deferred): full"},
		"a condition that is False": {sizedPod(&two, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionFalse, Reason: corev1.PodReasonInfeasible}}
		}), ""},
		"a container without resources needs none in the status": {sizedPod(nil, oldKubelet, func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }), ""},
		"what cannot be resized does not count": {sizedPod(&two, oldKubelet, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("2"), "example.com/gpu": resource.MustParse("1")}
		}), ""},
		"a container has no status": {sizedPod(&two, func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }), "has no status"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IncompleteReason(tc.pod); (got == "") != (tc.why == "") || !strings.Contains(got, tc.why) {
				t.Errorf("Incomplete says %q, want %q", got, tc.why)
			}
		})
	}
}

func TestTroubleIsToldOfWhatWeHaveResized(t *testing.T) {
	one := cpus("1")
	full := told(corev1.PodResizePending, corev1.PodReasonDeferred, "full")
	tests := map[string]struct {
		pod  *corev1.Pod
		want string // the reason, "" for no trouble
	}{
		"a resize that waits":                 {sizedPod(&one, full), corev1.PodReasonDeferred},
		"a resize that failed":                {sizedPod(&one, told(corev1.PodResizeInProgress, corev1.PodReasonError, "busy")), corev1.PodReasonError},
		"a resize that is under way":          {sizedPod(&one, told(corev1.PodResizeInProgress, "", "")), ""},
		"a resize that is complete":           {sizedPod(&one), ""},
		"what is reported of an earlier spec": {sizedPod(&one, full, func(p *corev1.Pod) { p.Status.ObservedGeneration = 1 }), ""},
		"a resize that waits for the grace period": {sizedPod(&one, full, func(p *corev1.Pod) {
			p.Annotations[kruise.InPlaceUpdateGraceKey] = "{}"
		}), ""},
		"another client's resize of a pod that was never updated": {&corev1.Pod{Status: corev1.PodStatus{Conditions: sizedPod(nil, full).Status.Conditions}}, ""},
		"another client's resize after an update of the image":    {updating(full, nil), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ResizeFailure{}
			if trouble := ResizeTrouble(tc.pod); trouble != nil {
				got = *trouble
			}
			if got.Reason != tc.want {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}
