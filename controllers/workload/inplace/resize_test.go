// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func resized() (from, to *corev1.PodTemplateSpec) {
	from, to = twoContainers(), twoContainers()
	to.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2")
	return from, to
}

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
	spec, err := between(t, from, to).Spec("web-2", 0, true)
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
	if cpu := got.Spec.Containers[0].Resources.Limits["cpu"]; got.Labels[revisionLabel] != "web-2" || cpu.String() != "2" {
		t.Errorf("after all writes: label %s, cpu %s", got.Labels[revisionLabel], cpu.String())
	}
	if Incomplete(got) == "" {
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
	if cpu := got.Spec.Containers[0].Resources.Limits["cpu"]; got.Labels[revisionLabel] != "web-2" || cpu.String() != "2" {
		t.Errorf("label %s, cpu %s", got.Labels[revisionLabel], cpu.String())
	}
}
