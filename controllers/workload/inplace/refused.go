package inplace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// Refusals remembers whose update an admission webhook or policy refused after the
// pod had left its services: the next time that is tried by a dry run first, and
// the pod stays where it is. It is safe for concurrent use; the zero value is ready.
type Refusals struct {
	mu sync.Mutex
	of map[types.UID]bool
}

// mostRefusals bounds what is remembered. Whoever is forgotten leaves its services
// for a moment once more.
const mostRefusals = 10_000

func (r *Refusals) has(uid types.UID) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[uid]
}

func (r *Refusals) set(uid types.UID, refused bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !refused:
		delete(r.of, uid)
	case r.of == nil || len(r.of) >= mostRefusals:
		r.of = map[types.UID]bool{uid: true}
	default:
		r.of[uid] = true
	}
}

// refused says whether an API server will not have a write, whatever the moment:
// not one that lost a race, came too fast or was about something that is gone.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusNotFound, http.StatusConflict, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// try asks by a dry run whether the change of a pod would be taken; nothing is
// said against it unless it is refused.
func (u Updater) try(ctx context.Context, pod *corev1.Pod, spec *kruise.UpdateSpec, edit func(*corev1.Pod)) error {
	dry := u
	dry.Client = client.NewDryRunClient(u.Client)
	if _, _, err := dry.change(ctx, pod, spec, edit); refused(err) {
		return err
	}
	return nil
}

// putBack returns a pod to its services whose change was refused, as err says.
// It is the one that was taken out, as it is stored now.
func (u Updater) putBack(ctx context.Context, pod *corev1.Pod, err error) (*corev1.Pod, error) {
	u.Refused.set(pod.UID, true)
	back, failed := u.open(ctx, pod, "") // the kubelet has written since, more likely than not
	if failed != nil {
		return pod, errors.Join(err, fmt.Errorf("returning the pod to its services: %w", failed))
	}
	return back, err
}
