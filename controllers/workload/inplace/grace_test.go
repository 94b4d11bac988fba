// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func TestTheGracePeriodComesBetweenNotReadyAndTheChange(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image, to.Labels["tier"] = "main:2", "gold"
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	_, left := start(t, w, between(t, from, to), 30)
	got := w.pod()
	if left != 30*time.Second || got.Spec.Containers[0].Image != "main:1" || got.Labels["tier"] != "" || got.Labels[revisionLabel] != "web-2" {
		t.Errorf("after the start: %s left, image %s, labels %v", left, got.Spec.Containers[0].Image, got.Labels)
	}
	if FindCondition(got, corev1.PodReady).Status != corev1.ConditionFalse || IncompleteReason(got) == "" {
		t.Error("it is ready, or complete, in its grace period")
	}
	w.now = w.now.Add(28500 * time.Millisecond)
	if next, left, err := w.u.NextStep(w.pod()); next != Nothing || left != 2*time.Second || err != nil {
		t.Errorf("after 28.5 s: %q, %s, %v; want to wait 2 s", next, left, err)
	}
	w.now = w.now.Add(1500 * time.Millisecond)
	if next, _, _ := w.u.NextStep(w.pod()); next != Grace {
		t.Errorf("after 30 s: %q", next)
	}
	w.finish()
	got = w.pod()
	if got.Spec.Containers[0].Image != "main:2" || got.Labels["tier"] != "gold" || InGrace(got) {
		t.Errorf("after it: image %s, labels %v", got.Spec.Containers[0].Image, got.Labels)
	}
}

func TestAPodOfAnotherRevisionOnlyLosesItsGrace(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	start(t, w, between(t, from, to), 30)
	other := w.pod()
	other.Labels[revisionLabel] = "web-3"
	if err := w.client.Update(context.Background(), other); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Minute)
	w.finish()
	if got := w.pod(); InGrace(got) || got.Spec.Containers[0].Image != "main:1" {
		t.Errorf("image %s, annotations %v", got.Spec.Containers[0].Image, got.Annotations)
	}
}

// OpenKruise writes null for what has no entries; such a pod once stopped the
// whole controller.
func TestAPodInTheGracePeriodOfOpenKruiseGoesOn(t *testing.T) {
	pod := podOf(twoContainers(), false)
	pod.Annotations = map[string]string{
		kruise.InPlaceUpdateStateLegacyKey: `{"revision":"web-1","updateTimestamp":"2026-01-01T00:00:00Z","lastContainerStatuses":null}`,
		kruise.InPlaceUpdateGraceLegacyKey: `{"revision":"web-1","containerImages":{"main":"main:2"},"graceSeconds":30}`,
	}
	w := newWorld(t, pod)
	w.kubelet()
	w.finish()
	got := w.pod()
	if got.Spec.Containers[0].Image != "main:2" || len(got.Annotations) != 1 || got.Annotations[kruise.InPlaceUpdateStateKey] == "" {
		t.Errorf("image %s, annotations %v", got.Spec.Containers[0].Image, got.Annotations)
	}
}

func TestAGracePeriodWithoutARecordIsOver(t *testing.T) {
	pod := podOf(twoContainers(), false)
	pod.Annotations = map[string]string{kruise.InPlaceUpdateGraceKey: `{"revision":"web-1","containerImages":{"main":"main:2"},"graceSeconds":30}`}
	w := newWorld(t, pod)
	w.kubelet()
	w.finish()
	if got := w.pod(); got.Spec.Containers[0].Image != "main:2" || InGrace(got) {
		t.Errorf("image %s, annotations %v", got.Spec.Containers[0].Image, got.Annotations)
	}
}
