// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func resized() (from, to *corev1.PodTemplateSpec) {
	from, to = twoContainers(), twoContainers()
	to.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2")
	return from, to
}

// cpuOf is the CPU limit of a pod's first container.
func cpuOf(pod *corev1.Pod) string { return pod.Spec.Containers[0].Resources.Limits.Cpu().String() }

// The label must not say that a pod has resources which were not written.
func TestResourcesAreWrittenBeforeTheLabel(t *testing.T) {
	from, to := resized()
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	w.fail = func(n int) error {
		if n == 2 {
			return conflict()
		}
		return nil
	}
	spec, err := between(t, from, to).UpdateSpec("web-2", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	told, _, err := w.u.Start(context.Background(), w.pod(), spec, nil)
	got := w.pod()
	if err == nil || got.Labels[revisionLabel] != "web-1" || told == nil || told.ResourceVersion != got.ResourceVersion {
		t.Fatalf("after the first write: %v, label %s, told %v", err, got.Labels[revisionLabel], told != nil)
	}
	w.fail = nil
	start(t, w, between(t, from, to), 0)
	got = w.pod()
	if got.Labels[revisionLabel] != "web-2" || cpuOf(got) != "2" {
		t.Errorf("after all writes: label %s, cpu %s", got.Labels[revisionLabel], cpuOf(got))
	}
	if IncompleteReason(got) == "" {
		t.Error("it is complete before the kubelet has seen it")
	}
	w.finish()
}

func TestAnOldAPIServerTakesResourcesWithTheRest(t *testing.T) {
	from, to := resized()
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	w.fail = func(n int) error {
		if n == 1 {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "pods/resize"}, "web-a")
		}
		return nil
	}
	start(t, w, between(t, from, to), 0)
	got := w.pod()
	if got.Labels[revisionLabel] != "web-2" || cpuOf(got) != "2" {
		t.Errorf("label %s, cpu %s", got.Labels[revisionLabel], cpuOf(got))
	}
}

// The kubelet answers a resize at once, and often before the label is written.
func TestAKubeletThatAnswersTheResizeFirstCostsNoRound(t *testing.T) {
	from, to := resized()
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	w.u.Live = w.client
	w.fail = func(n int) error {
		if n == 2 {
			w.kubelet()
			return conflict()
		}
		return nil
	}
	start(t, w, between(t, from, to), 0)
	if got := w.pod(); w.writes != 3 || got.Labels[revisionLabel] != "web-2" || IncompleteReason(got) != "" {
		t.Errorf("%d writes, label %s, %q", w.writes, got.Labels[revisionLabel], IncompleteReason(got))
	}
}

func TestWhichResizeTakesAPodOutOfItsServices(t *testing.T) {
	restarts := []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: corev1.RestartContainer}}
	for name, tc := range map[string]struct {
		gated  bool
		policy []corev1.ContainerResizePolicy
		image  bool
		out    bool
	}{
		"one without a restart does not":         {gated: true},
		"one with a restart does":                {gated: true, policy: restarts, out: true},
		"but not without the gate":               {policy: restarts},
		"one with an image does":                 {gated: true, image: true, out: true},
		"one with an image, without the gate":    {image: true},
		"one with an image and a restart does":   {gated: true, policy: restarts, image: true, out: true},
		"a restart for memory is another matter": {gated: true, policy: []corev1.ContainerResizePolicy{{ResourceName: "memory", RestartPolicy: corev1.RestartContainer}}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := resized()
			from.Spec.Containers[0].ResizePolicy, to.Spec.Containers[0].ResizePolicy = tc.policy, tc.policy
			if tc.image {
				to.Spec.Containers[0].Image = "main:2"
			}
			w := newWorld(t, podOf(from, tc.gated))
			w.kubelet()
			before := statusOf(w.pod(), "main").ContainerID
			start(t, w, between(t, from, to), 0)
			ready := FindCondition(w.pod(), kruise.InPlaceUpdateReady)
			if out := ready != nil && ready.Status == corev1.ConditionFalse; out != tc.out {
				t.Errorf("the gate is %+v", ready)
			}
			w.finish()
			got := w.pod()
			if cpuOf(got) != "2" || got.Labels[revisionLabel] != "web-2" {
				t.Errorf("cpu %s, label %s", cpuOf(got), got.Labels[revisionLabel])
			}
			if again := statusOf(got, "main").ContainerID != before; again != (tc.image || len(tc.policy) > 0 && tc.policy[0].ResourceName == "cpu") {
				t.Errorf("restarted: %v", again)
			}
		})
	}
}

// A pod must not get the resources of a revision whose other changes are refused.
func TestAPodGetsItsResourcesBackWhenTheRestIsRefused(t *testing.T) {
	no := apierrors.NewForbidden(corev1.Resource("pods"), "web", errors.New("it is lunch time"))
	for name, tc := range map[string]struct {
		refusals *Refusals
		no       int // the first write that is refused
		writes   int
		cpu      string
	}{
		"the dry run of the resize":                 {&Refusals{}, 1, 1, "1"},
		"the dry run of the rest":                   {&Refusals{}, 2, 3, "1"},
		"the rest, though the dry run went through": {&Refusals{}, 5, 7, "1"},
		"the rest, without a dry run":               {nil, 3, 5, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := resized()
			to.Spec.Containers[0].Image = "main:2"
			w := newWorld(t, podOf(from, true))
			w.u.Refused = tc.refusals
			w.kubelet()
			if _, err := w.u.MarkReady(context.Background(), w.pod(), nil); err != nil {
				t.Fatal(err)
			}
			w.writes = 0
			w.fail = func(n int) error {
				if n == tc.no {
					return no
				}
				return nil
			}
			spec, err := between(t, from, to).UpdateSpec("web-2", 0, true)
			if err != nil {
				t.Fatal(err)
			}
			told, _, err := w.u.Start(context.Background(), w.pod(), spec, nil)
			got := w.pod()
			if !apierrors.IsForbidden(err) || w.writes != tc.writes || cpuOf(got) != tc.cpu || got.Labels[revisionLabel] != "web-1" {
				t.Errorf("%v after %d writes, cpu %s, label %s", err, w.writes, cpuOf(got), got.Labels[revisionLabel])
			}
			if c := FindCondition(got, kruise.InPlaceUpdateReady); c.Status != corev1.ConditionTrue {
				t.Errorf("it is out of its services: %+v", c)
			}
			if told != nil && told.ResourceVersion != got.ResourceVersion {
				t.Error("the returned pod is not the one written")
			}
		})
	}
}

// OpenKruise never starts such a batch.
func TestABatchOfResourcesAloneStarts(t *testing.T) {
	template := func(image, cpu string) *corev1.PodTemplateSpec {
		p := &corev1.PodTemplateSpec{Spec: barriered("first/p_9", "second/p_1").Spec}
		p.Spec.Containers[0].Image = "first:" + image
		p.Spec.Containers[1].Resources = cpus(cpu)
		return p
	}
	w := newWorld(t, podOf(template("1", "1"), true))
	w.kubelet()
	start(t, w, between(t, template("1", "1"), template("2", "2")), 0)
	s, err := DecodeState(w.pod())
	if err != nil || len(s.NextContainerImages)+len(s.NextContainerRefMetadata) > 0 || len(s.NextContainerResources) != 1 {
		t.Fatalf("the record is %+v, %v", s, err)
	}
	w.kubelet()
	if next, _, _ := w.u.NextStep(w.pod()); next != Batch {
		t.Fatalf("next is %q", next)
	}
	w.finish()
	s, _ = DecodeState(w.pod())
	if got := w.pod().Spec.Containers[1].Resources.Limits.Cpu().String(); got != "2" || len(s.ContainerBatchesRecord) != 2 || !slices.Equal(s.ContainerBatchesRecord[1].Containers, []string{"second"}) {
		t.Errorf("cpu %s, record %+v", got, s)
	}
}

// The API server gives a container whose template has only limits these as requests. If the
// limits alone grew, the pod would get another QoS class, and the API server refuses that.
func TestRequestsThatTheTemplateDoesNotHaveFollowTheLimits(t *testing.T) {
	template := func(cpu, memory string, requests corev1.ResourceList) *corev1.PodTemplateSpec {
		p := &corev1.PodTemplateSpec{Spec: barriered("main").Spec}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}, Requests: requests,
		}
		return p
	}
	own := corev1.ResourceList{"cpu": resource.MustParse("100m")}
	for name, tc := range map[string]struct {
		from, to *corev1.PodTemplateSpec
		want     corev1.ResourceList
	}{
		"limits alone":         {template("1", "1Gi", nil), template("2", "2Gi", nil), corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("2Gi")}},
		"one of the two":       {template("1", "1Gi", nil), template("1", "2Gi", nil), corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("2Gi")}},
		"a request of its own": {template("1", "1Gi", own), template("2", "2Gi", own), corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("2Gi")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, podOf(tc.from, true))
			w.kubelet()
			start(t, w, between(t, tc.from, tc.to), 0)
			if diff := cmp.Diff(tc.want, w.pod().Spec.Containers[0].Resources.Requests); diff != "" {
				t.Error(diff)
			}
			w.finish()
		})
	}
}

func TestWhatANodeCannotGiveIsUndoneInPlace(t *testing.T) {
	from, to := resized()
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	w.cannot = corev1.PodReasonInfeasible
	start(t, w, between(t, from, to), 0)
	w.kubelet()
	trouble := ResizeTrouble(w.pod())
	if trouble == nil || trouble.Reason != corev1.PodReasonInfeasible || !strings.Contains(IncompleteReason(w.pod()), trouble.Message) {
		t.Fatalf("the trouble is %+v, incomplete is %q", trouble, IncompleteReason(w.pod()))
	}
	container := statusOf(w.pod(), "main").ContainerID
	spec, err := between(t, to, from).UpdateSpec("web-1", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.u.Start(context.Background(), w.pod(), spec, nil); err != nil {
		t.Fatal(err)
	}
	w.finish()
	got := w.pod()
	if cpuOf(got) != "1" || got.Labels[revisionLabel] != "web-1" || ResizeTrouble(got) != nil || statusOf(got, "main").ContainerID != container {
		t.Errorf("cpu %s, label %s, %+v", cpuOf(got), got.Labels[revisionLabel], ResizeTrouble(got))
	}
}

// An update of the image alone does not forget that the pod waits for resources.
func TestTheNextUpdateWaitsForResourcesToo(t *testing.T) {
	from, to := resized()
	next := to.DeepCopy()
	next.Spec.Containers[0].Image = "main:2"
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	w.cannot = corev1.PodReasonDeferred
	start(t, w, between(t, from, to), 0)
	w.kubelet()
	spec, err := between(t, to, next).UpdateSpec("web-3", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.u.Start(context.Background(), w.pod(), spec, nil); err != nil {
		t.Fatal(err)
	}
	w.kubelet()
	if trouble := ResizeTrouble(w.pod()); trouble == nil || trouble.Reason != corev1.PodReasonDeferred {
		t.Errorf("the trouble is %+v, incomplete is %q", trouble, IncompleteReason(w.pod()))
	}
	w.cannot = ""
	w.finish()
	if got := w.pod(); cpuOf(got) != "2" || got.Spec.Containers[0].Image != "main:2" {
		t.Errorf("cpu %s, image %s", cpuOf(got), got.Spec.Containers[0].Image)
	}
}
