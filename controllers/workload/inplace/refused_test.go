// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func TestAPodWhoseUpdateIsRefusedStaysInItsServices(t *testing.T) {
	const in, out = "InPlaceUpdateReady=True ", "InPlaceUpdateReady=False StartInPlaceUpdate"
	type step struct {
		name   string
		no     int // the write that is refused, of those of the step
		writes int
		want   string
	}
	for name, steps := range map[string][]step{
		"the first of its rollout": {
			{"refused: the dry run", 1, 1, in},
			{"refused again: the dry run", 1, 1, in},
			{"taken: the dry run, out, the change", 0, 3, out},
		},
		"after another was updated": {
			{"refused: out, the change, back", 2, 3, in},
			{"refused again: the dry run", 1, 1, in},
			{"taken: the dry run, out, the change", 0, 3, out},
		},
		"after another was, and taken": {{"out, the change", 0, 2, out}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := twoContainers(), twoContainers()
			to.Spec.Containers[0].Image = "main:2"
			w := newWorld(t, podOf(from, true))
			w.u.Refused = &Refusals{}
			w.kubelet()
			if _, err := w.u.MarkReady(context.Background(), w.pod(), nil); err != nil {
				t.Fatal(err)
			}
			spec, err := between(t, from, to).UpdateSpec("web-2", 0, true)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(name, "after another") {
				w.u.Refused.recordOutcome(w.pod(), "web-2", false)
			}
			no := apierrors.NewForbidden(corev1.Resource("pods"), "web", errors.New("it is lunch time"))
			for _, step := range steps {
				w.writes = 0
				w.fail = func(write int) error {
					if write == step.no {
						return no
					}
					return nil
				}
				written, _, err := w.u.Start(context.Background(), w.pod(), spec, nil)
				if (step.no > 0) != apierrors.IsForbidden(err) || step.no == 0 && err != nil {
					t.Errorf("%s: %v", step.name, err)
				}
				if written != nil && written.ResourceVersion != w.pod().ResourceVersion {
					t.Errorf("%s: what is returned is not what was written last", step.name)
				}
				if got := conditions(w.pod())[0]; got != step.want || w.writes != step.writes {
					t.Errorf("%s: %s after %d writes, want %s after %d", step.name, got, w.writes, step.want, step.writes)
				}
			}
			if got := w.pod().Spec.Containers[0].Image; got != "main:2" {
				t.Errorf("in the end the pod runs %s", got)
			}
		})
	}
}

func TestAPodThatServesNobodyIsNotAskedAbout(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	for _, tc := range []struct {
		ready corev1.ConditionStatus
		more  int
	}{{corev1.ConditionFalse, 0}, {corev1.ConditionTrue, 1}} {
		var writes []int
		for _, refused := range []*Refusals{nil, {}} {
			pod := podOf(from, true)
			pod.Status.Conditions[1].Status = tc.ready
			w := newWorld(t, pod)
			w.u.Refused = refused
			start(t, w, between(t, from, to), 0)
			writes = append(writes, w.writes)
		}
		if writes[1] != writes[0]+tc.more {
			t.Errorf("in its services %s: %d writes, and %d without asking", tc.ready, writes[1], writes[0])
		}
	}
}

func TestARolloutIsKnownByItsWorkloadAndRevision(t *testing.T) {
	of := func(owner types.UID) *corev1.Pod {
		pod := &corev1.Pod{}
		pod.OwnerReferences = []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}}
		return pod
	}
	r := &Refusals{}
	r.recordOutcome(of("web"), "2", false)
	r.recordOutcome(of("db"), "2", true)
	r.recordOutcome(of("db"), "2", false) // a rule may be about some of its pods
	for _, tc := range []struct {
		name, revision string
		owner          types.UID
		want           bool
	}{
		{"a rollout that goes well", "2", "web", true},
		{"the next of that workload", "3", "web", false},
		{"one that a pod was refused for", "2", "db", false},
		{"one that nothing is known of", "2", "cache", false},
	} {
		if got := r.isAssumedAllowed(of(tc.owner), tc.revision); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
	r.recordOutcome(of("db"), "3", false)
	if !r.isAssumedAllowed(of("db"), "3") {
		t.Error("what was refused of the last revision is held against the next")
	}
}

func TestWhatIsRefusedAndWhatOnlyFailed(t *testing.T) {
	pods := corev1.Resource("pods")
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{"a webhook that denies", apierrors.NewForbidden(pods, "web", nil), true},
		{"a policy of the API server", apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "web", nil), true},
		{"a lost race", apierrors.NewConflict(pods, "web", nil), false},
		{"a pod that is gone", apierrors.NewNotFound(pods, "web"), false},
		{"too many requests", apierrors.NewTooManyRequests("slow down", 1), false},
		{"an API server that fails", apierrors.NewInternalError(errors.New("etcd is away")), false},
		{"a connection that broke", errors.New("EOF"), false},
		{"nothing", nil, false},
	} {
		if got := isRefused(tc.err); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	r := &Refusals{}
	for i := range mostRollouts + 1 {
		r.recordOutcome(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(rune(i))}}, "1", true)
	}
	if len(r.of) > mostRollouts {
		t.Errorf("%d are remembered", len(r.of))
	}
}
