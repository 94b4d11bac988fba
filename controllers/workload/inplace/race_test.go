// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web-a", errors.New("another client was first"))
}

// After a failure the caller gets what was written before it, so that it does not
// take a pod for ready that was just taken out of its services.
func TestAFailureHalfWayTellsWhatWasWritten(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	d := between(t, from, to)
	for write, wantTold := range map[int]bool{1: false, 2: true} {
		w := newWorld(t, podOf(from, true))
		w.kubelet()
		w.fail = func(n int) error {
			if n == write {
				return conflict()
			}
			return nil
		}
		spec, err := d.UpdateSpec("web-2", 0, true)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := w.u.Start(context.Background(), w.pod(), spec, nil)
		if !apierrors.IsConflict(err) {
			t.Fatalf("the error is %v", err)
		}
		if (got != nil) != wantTold {
			t.Fatalf("write %d fails: told %v", write, got != nil)
		}
		if got != nil && (got.ResourceVersion != w.pod().ResourceVersion || cmp.Diff(got.Labels, w.pod().Labels) != "") {
			t.Errorf("write %d fails: the returned pod is not the one written", write)
		}
	}
}

// The kubelet answers a pod that is not ready with a status of its own, and may be faster than the change.
func TestAKubeletThatIsFasterCostsNoWriteMore(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	d := between(t, from, to)
	for _, tc := range []struct {
		name   string
		races  int
		other  func(*corev1.Pod)
		writes int
		lost   bool
	}{
		{name: "once", races: 1, writes: 3},
		{name: "as often as may be", races: 3, writes: 5},
		{name: "too often", races: 4, writes: 5, lost: true},
		{name: "another client wrote the pod", races: 1, other: func(p *corev1.Pod) { p.Labels["theirs"] = "x" }, writes: 2, lost: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, podOf(from, true))
			w.kubelet()
			w.u.Live = w.client
			w.fail = func(n int) error {
				if n < 2 || n > 1+tc.races {
					return nil
				}
				pod := w.pod()
				if tc.other != nil {
					tc.other(pod)
					if err := w.client.Update(context.Background(), pod); err != nil {
						t.Fatal(err)
					}
				}
				return conflict()
			}
			spec, err := d.UpdateSpec("web-2", 0, true)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := w.u.Start(context.Background(), w.pod(), spec, nil)
			if apierrors.IsConflict(err) != tc.lost || w.writes != tc.writes || got == nil {
				t.Errorf("%d writes, %v", w.writes, err)
			}
			if !tc.lost && (w.pod().Spec.Containers[0].Image != "main:2" || got.ResourceVersion != w.pod().ResourceVersion) {
				t.Errorf("got %v", w.pod().Spec.Containers)
			}
		})
	}
}

func TestReadyIsSetOnlyOnThePodAsItWasSeen(t *testing.T) {
	w := newWorld(t, podOf(twoContainers(), true))
	stale := w.pod()
	w.kubelet()
	if _, err := w.u.MarkReady(context.Background(), stale, nil); !apierrors.IsConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
}

func TestANewPodIsOpenedWhoeverWroteItMeanwhile(t *testing.T) {
	pod := podOf(twoContainers(), true)
	pod.Status.Conditions = nil
	w := newWorld(t, pod)
	created := w.pod()
	w.kubelet()
	if _, err := w.u.MarkReady(context.Background(), created, nil); err != nil {
		t.Fatal(err)
	}
	if WantsReady(w.pod()) {
		t.Error("its gates are not open")
	}
}

func TestAPodWithoutTheGateHasOnlyTheOtherOpened(t *testing.T) {
	pod := podOf(twoContainers(), false)
	pod.Spec.ReadinessGates = nil
	AddGate(pod, kruise.KruisePodReady)
	w := newWorld(t, pod)
	if _, err := w.u.MarkReady(context.Background(), w.pod(), nil); err != nil {
		t.Fatal(err)
	}
	if got := FindCondition(w.pod(), kruise.InPlaceUpdateReady); got != nil {
		t.Errorf("it has the condition %+v", got)
	}
	if got := FindCondition(w.pod(), kruise.KruisePodReady); got == nil || got.Status != corev1.ConditionTrue {
		t.Errorf("its gate is %+v", got)
	}
}
