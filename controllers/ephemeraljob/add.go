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

// mayPass is how long a refusal is tried again that may pass, such as that of a webhook or of a permission that is missing.
const mayPass = time.Minute

// mostWhy is how many bytes of a refusal the status of the job repeats.
const mostWhy = 500

// errNotServed is of an API server that does not have the subresource.
var errNotServed = errors.New("the API server does not serve pods/ephemeralcontainers")

// refusal is why a pod did not get the containers.
type refusal struct {
	since time.Time
	why   string
	// final says that it is not tried again: the pod has failed.
	final bool
}

// forgetRefusalsBeforeEdit forgets the refusals of a job that was edited since.
func (m *memory) forgetRefusalsBeforeEdit(job *kruise.EphemeralJob) {
	if m.generation != job.Generation {
		clear(m.refused)
		m.generation = job.Generation
	}
}

// recordRefusal notes a refusal. One of the schema stands, since neither the pod nor the template becomes another one.
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

// stateOf is the state of a pod in a job, as far as the API server and the refusals of the pod say.
func (m *memory) stateOf(pod *corev1.Pod, job *kruise.EphemeralJob) podState {
	state, foreign := stateOf(pod, job)
	if foreign || state == untouched && m.refused[pod.UID].final {
		return unable
	}
	return state
}

// whyUnable says whyUnable a pod is unable.
func (m *memory) whyUnable(pod *corev1.Pod) string {
	if was := m.refused[pod.UID]; was.final {
		return was.why
	}
	return "pod " + pod.Name + " has an ephemeral container of the same name already"
}

// addContainers adds the containers to pods, in slow start batches. A pod that cannot have them does not
// keep the others from getting them. final is of pods that are not tried again, and err of what is.
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

// addTo adds the containers to one pod, and returns the pod with them; nil if it is gone, and so is its part of the job.
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
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // an API server without the subresource says not found too
		now := &corev1.Pod{}
		failed := r.Live.Get(ctx, client.ObjectKeyFromObject(pod), now)
		switch {
		case apierrors.IsNotFound(failed) || failed == nil && (now.UID != pod.UID || !isActive(now)):
			return nil, nil
		case failed != nil:
			return nil, fmt.Errorf("reading pod %s past the cache: %w", pod.Name, failed)
		case apierrors.IsNotFound(err): // the caller would take the job itself for gone
			return nil, fmt.Errorf("adding containers to pod %s: %w: %s", pod.Name, errNotServed, err.Error())
		}
	}
	return nil, fmt.Errorf("adding containers to pod %s: %w", pod.Name, err)
}

// isRefusal reports whether an error is of the request, which is not better a moment later by itself.
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
