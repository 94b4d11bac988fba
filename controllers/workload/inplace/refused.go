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

// Refusals remembers for each workload whether admission webhooks and policies allow
// its latest rollout, so that no pod leaves its services for a change that is refused. The
// first pod of a rollout is checked by a dry run. A later pod may still be refused
// after it left its services, since a rule may apply to some pods only. Then each
// further pod of that rollout is checked first. Refusals is safe for concurrent use;
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

// mostRollouts bounds how many rollouts are remembered. If a workload is forgotten, the next change is
// checked by a dry run once more.
const mostRollouts = 10_000

// isAssumedAllowed reports whether a change of a pod may be assumed to be allowed, without a dry run.
func (r *Refusals) isAssumedAllowed(pod *corev1.Pod, revision string) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[workloadUID(pod)] == rollout{revision: revision}
}

// recordOutcome notes whether the change of a pod was refused. A refused rollout stays refused until the workload has
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

// isRefused reports whether an API server refuses a write regardless of the time. Conflicts, throttled requests and
// requests for objects that are gone are not refused in this sense.
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

// dryRunChange checks by a dry run whether the change of a pod is refused. It returns an error only
// if it is.
func (u Updater) dryRunChange(ctx context.Context, pod *corev1.Pod, earlier containers, spec *kruise.UpdateSpec, edit func(*corev1.Pod)) error {
	dry := u
	dry.Client = client.NewDryRunClient(u.Client)
	if _, _, err := dry.changePod(ctx, pod, earlier, spec, edit); isRefused(err) && !noDryRun(err) {
		return err
	}
	return nil
}

// noDryRun reports whether a request was refused only because it is a dry run: a webhook with
// side effects does not support it. That does not refuse the change itself.
func noDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// putBack returns a pod to its services after its change was refused with err.
// pod is the pod as it was last written.
func (u Updater) putBack(ctx context.Context, pod *corev1.Pod, err error) (*corev1.Pod, error) {
	back, failed := u.openGates(ctx, pod, "", nil) // without a version, since the kubelet has probably written since
	if failed != nil {
		return pod, errors.Join(err, fmt.Errorf("returning the pod to its services: %w", failed))
	}
	return back, err
}
