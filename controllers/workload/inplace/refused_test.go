package inplace

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// A pod leaves its services for a moment when its update is refused the first
// time, and not again however often that is tried.
func TestAPodWhoseUpdateIsRefusedStaysInItsServices(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	w := newWorld(t, podOf(from, true))
	w.u.Refused = &Refusals{}
	w.kubelet()
	if _, err := w.u.MarkReady(context.Background(), w.pod()); err != nil {
		t.Fatal(err)
	}
	spec, err := between(t, from, to).Spec("web-2", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	no := apierrors.NewForbidden(corev1.Resource("pods"), "web", errors.New("it is lunch time"))
	for _, step := range []struct {
		name   string
		no     int // the write that is refused, of those of the step
		writes int
		want   string
	}{
		{"refused the first time: out, refused, back", 2, 3, "InPlaceUpdateReady=True "},
		{"refused again: the dry run", 1, 1, "InPlaceUpdateReady=True "},
		{"taken: the dry run, out, the change", 0, 3, "InPlaceUpdateReady=False StartInPlaceUpdate"},
	} {
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
	if got := w.pod().Spec.Containers[0].Image; got != "main:2" || w.u.Refused.has(w.pod().UID) {
		t.Errorf("in the end the pod runs %s, refused: %t", got, w.u.Refused.has(w.pod().UID))
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
		if got := refused(tc.err); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	r := &Refusals{}
	for i := range mostRefusals + 1 {
		r.set(types.UID(rune(i)), true)
	}
	if len(r.of) > mostRefusals {
		t.Errorf("%d are remembered", len(r.of))
	}
}
