// SPDX-License-Identifier: Apache-2.0

package ephemeraljob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/batch"
)

// mayPass is how long a refusal that may be temporary is retried, such as one by a webhook or for lack of a permission.
const mayPass = time.Minute

// mostWhy is how many bytes of a refusal the status of the job repeats.
const mostWhy = 500

// errNotServed says that the API server does not have the subresource.
var errNotServed = errors.New("the API server does not serve pods/ephemeralcontainers")

// refusal is why a pod did not get the containers.
type refusal struct {
	since time.Time
	why   string
	// final is true if the pod is not tried again: it has failed.
	final bool
}

// forgetRefusalsBeforeEdit forgets the refusals of a job that was edited since.
func (m *memory) forgetRefusalsBeforeEdit(job *kruise.EphemeralJob) {
	if m.generation != job.Generation {
		clear(m.refused)
		m.generation = job.Generation
	}
}

// recordRefusal notes a refusal. A refusal by the schema is final, since neither the pod nor the template changes.
func (m *memory) recordRefusal(pod types.UID, err error, now time.Time) {
	was, again := m.refused[pod]
	if !again {
		was.since = now
	}
	was.why = err.Error()
	if len(was.why) > mostWhy {
		was.why = strings.ToValidUTF8(was.why[:mostWhy], "") + "..."
	}
	was.final = apierrors.IsInvalid(err) || now.Sub(was.since) >= mayPass
	m.refused[pod] = was
}

// stateOf returns the state of a pod in a job, by its status and its refusals.
func (m *memory) stateOf(pod *corev1.Pod, job *kruise.EphemeralJob) podState {
	state, foreign := stateOf(pod, job)
	if foreign || state == untouched && m.refused[pod.UID].final {
		return unable
	}
	return state
}

// whyUnable says why a pod is unable to have the containers.
func (m *memory) whyUnable(pod *corev1.Pod) string {
	if was := m.refused[pod.UID]; was.final {
		return was.why
	}
	return "pod " + pod.Name + " has an ephemeral container of the same name already"
}

// addContainers adds the containers to pods, in slow start batches. A pod that cannot have them does not
// prevent the others from getting them. final is the error about pods that are not tried again, err the
// error about the rest.
func (r *Reconciler) addContainers(ctx context.Context, job *kruise.EphemeralJob, m *memory, pods []*corev1.Pod) (final, err error) {
	containers := make([]corev1.EphemeralContainer, len(job.Spec.Template.EphemeralContainers))
	for i := range containers {
		job.Spec.Template.EphemeralContainers[i].DeepCopyInto(&containers[i])
		containers[i].Env = append(slices.DeleteFunc(containers[i].Env, func(e corev1.EnvVar) bool { return e.Name == kruise.EphemeralJobIDEnv }),
			corev1.EnvVar{Name: kruise.EphemeralJobIDEnv, Value: string(job.UID)})
	}
	results, refused := make([]*corev1.Pod, len(pods)), make([]error, len(pods))
	acts := make([]func() error, len(pods))
	for i, pod := range pods {
		acts[i] = func() error {
			changed, err := r.addTo(ctx, pod, containers)
			if isRefusal(err) {
				refused[i] = err
				return nil
			}
			results[i] = changed
			return err
		}
	}
	again := []error{batch.SlowStart(r.writes, 1, acts)}
	var failed []error
	for i, pod := range results {
		if pod != nil {
			m.patched[pod.UID] = pod
			delete(m.refused, pod.UID)
		}
		if refused[i] == nil {
			continue
		}
		if m.recordRefusal(pods[i].UID, refused[i], r.Now()); m.refused[pods[i].UID].final {
			failed = append(failed, refused[i])
		} else {
			again = append(again, refused[i])
		}
	}
	return errors.Join(failed...), errors.Join(again...)
}

// addTo adds the containers to one pod, and returns the pod with them; nil if the pod is gone, so that the job has
// nothing to do for it.
func (r *Reconciler) addTo(ctx context.Context, pod *corev1.Pod, containers []corev1.EphemeralContainer) (*corev1.Pod, error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID}, // not another one of this name
		"spec":     map[string]any{"ephemeralContainers": containers},
	})
	if err != nil {
		return nil, fmt.Errorf("adding containers to pod %s: %w", pod.Name, err)
	}
	changed := pod.DeepCopy()
	err = r.Client.SubResource("ephemeralcontainers").Patch(ctx, changed, client.RawPatch(types.StrategicMergePatchType, body))
	if err == nil {
		return changed, nil
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // an API server without the subresource returns not found too
		now := &corev1.Pod{}
		failed := r.Live.Get(ctx, client.ObjectKeyFromObject(pod), now)
		switch {
		case apierrors.IsNotFound(failed) || failed == nil && (now.UID != pod.UID || !isActive(now)):
			return nil, nil
		case failed != nil:
			return nil, fmt.Errorf("reading pod %s past the cache: %w", pod.Name, failed)
		case apierrors.IsNotFound(err): // the caller would take a not found error to mean that the job is gone
			return nil, fmt.Errorf("adding containers to pod %s: %w: %s", pod.Name, errNotServed, err.Error())
		}
	}
	return nil, fmt.Errorf("adding containers to pod %s: %w", pod.Name, err)
}

// isRefusal reports whether an error is about the request itself, so that an immediate retry does not help.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return errors.Is(err, errNotServed)
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}
