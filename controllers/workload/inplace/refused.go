// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// Refusals remembers of each workload which rollout admission webhooks and policies
// let begin, so that no pod leaves its services for a change that is refused. The
// first pod of a rollout is asked about by a dry run. Should another be refused
// after it left all the same, for a rule may be about some pods only, then each
// further pod of that rollout is asked about first. It is safe for concurrent use;
// the zero value is ready.
type Refusals struct {
	mu sync.Mutex
	of map[types.UID]rollout
}

// rollout is the latest revision that pods of a workload were changed to, and
// whether that was refused for one of them.
type rollout struct {
	revision string
	refused  bool
}

// mostRollouts bounds what is remembered. For a workload that is forgotten, the API
// server is asked once more.
const mostRollouts = 10_000

// isAssumedAllowed reports whether a change of a pod may be taken to be allowed, without asking.
func (r *Refusals) isAssumedAllowed(pod *corev1.Pod, revision string) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[workloadUID(pod)] == rollout{revision: revision}
}

// recordOutcome notes how the change of a pod went. What was refused stays so until there is
// another revision.
func (r *Refusals) recordOutcome(pod *corev1.Pod, revision string, refused bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	uid := workloadUID(pod)
	last, known := r.of[uid]
	if r.of == nil || !known && len(r.of) >= mostRollouts {
		r.of = map[types.UID]rollout{}
	}
	r.of[uid] = rollout{revision, refused || last == rollout{revision, true}}
}

// workloadUID is the UID of the controller of a pod, or that of a pod without a controller.
func workloadUID(pod *corev1.Pod) types.UID {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return owner.UID
	}
	return pod.UID
}

// isRefused reports whether an API server will not have a write, whatever the moment:
// not one that lost a race, came too fast or was about something that is gone.
func isRefused(err error) bool {
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

// dryRunChange asks by a dry run whether the change of a pod would be taken; nothing is
// said against it unless it is refused.
func (u Updater) dryRunChange(ctx context.Context, pod *corev1.Pod, earlier containers, spec *kruise.UpdateSpec, edit func(*corev1.Pod)) error {
	dry := u
	dry.Client = client.NewDryRunClient(u.Client)
	if _, _, err := dry.changePod(ctx, pod, earlier, spec, edit); isRefused(err) && !noDryRun(err) {
		return err
	}
	return nil
}

// noDryRun reports whether a dry run was refused only because it is one: a webhook with
// side effects cannot take part. The change itself is not refused by that.
func noDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// putBack returns a pod to its services whose change was refused, as err says.
// It is the one that was taken out, as it is stored now.
func (u Updater) putBack(ctx context.Context, pod *corev1.Pod, err error) (*corev1.Pod, error) {
	back, failed := u.openGates(ctx, pod, "", nil) // the kubelet has written since, more likely than not
	if failed != nil {
		return pod, errors.Join(err, fmt.Errorf("returning the pod to its services: %w", failed))
	}
	return back, err
}
