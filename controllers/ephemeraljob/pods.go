// SPDX-License-Identifier: Apache-2.0

package ephemeraljob

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
)

// isNeverStarted reports whether a container that waits for this reason never starts: its runtime cannot run it, or the name of
// its image is invalid.
func isNeverStarted(reason string) bool {
	return reason == "RunContainerError" || reason == "InvalidImageName"
}

// podState is EJ-02.
type podState string

const (
	// untouched means that the pod does not have the containers.
	untouched podState = "Untouched"
	// added means that the pod has the containers, but no status of them yet.
	added     podState = "Added"
	waiting   podState = "Waiting"
	running   podState = "Running"
	succeeded podState = "Succeeded"
	failed    podState = "Failed"
	// unable means that the pod cannot have the containers, so it has failed.
	unable podState = "Unable"
	// lost means that the pod's node was not ready for too long, so the pod has failed.
	lost podState = "Lost"
)

func isActive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// owningJobUID is the UID of the job that added an ephemeral container; empty if none did.
func owningJobUID(c *corev1.EphemeralContainer) string {
	for _, env := range c.Env {
		if env.Name == kruise.EphemeralJobIDEnv {
			return env.Value
		}
	}
	return ""
}

// stateOf is EJ-02: the state of a pod in a job. foreign is true if another job, or a user, has added
// a container with one of the names.
func stateOf(pod *corev1.Pod, job *kruise.EphemeralJob) (state podState, foreign bool) {
	names := map[string]bool{}
	for i := range job.Spec.Template.EphemeralContainers {
		names[job.Spec.Template.EphemeralContainers[i].Name] = true
	}
	state = untouched
	for i := range pod.Spec.EphemeralContainers {
		if c := &pod.Spec.EphemeralContainers[i]; names[c.Name] {
			if owningJobUID(c) != string(job.UID) {
				return untouched, true
			}
			state = added
		}
	}
	if state == untouched {
		return state, false
	}
	counts := map[podState]int{}
	for i := range pod.Status.EphemeralContainerStatuses {
		if s := &pod.Status.EphemeralContainerStatuses[i]; names[s.Name] {
			counts[containerState(s.State)]++
		}
	}
	switch {
	case counts[failed] > 0:
		return failed, false
	case counts[succeeded] == len(names):
		return succeeded, false
	case counts[running] > 0:
		return running, false
	case counts[waiting] > 0:
		return waiting, false
	}
	return added, false
}

func containerState(s corev1.ContainerState) podState {
	switch {
	case s.Terminated != nil && s.Terminated.ExitCode != 0, s.Waiting != nil && isNeverStarted(s.Waiting.Reason):
		return failed
	case s.Terminated != nil && !s.Terminated.FinishedAt.IsZero():
		return succeeded
	case s.Running != nil:
		return running
	case s.Waiting != nil:
		return waiting
	}
	return added
}

// listPods is EJ-01 without the cut to spec.replicas. First come the pods that have the containers, then the others, each the oldest
// first; pods that cannot have the containers come last. The controller's own writes are laid over the cache until the cache shows
// them. The first time the pods are read from the API server: an earlier process may have made writes that the cache does not show
// yet.
func (r *Reconciler) listPods(ctx context.Context, job *kruise.EphemeralJob, m *memory) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading spec.selector: %w", err)
	}
	m.forgetRefusalsBeforeEdit(job)
	var from client.Reader = r.Client
	if !m.listed {
		from = r.Live
	}
	list := &corev1.PodList{}
	if err := from.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	var out []*corev1.Pod
	seen := map[types.UID]bool{}
	for i := range list.Items {
		pod := &list.Items[i]
		seen[pod.UID] = true
		state, foreign := stateOf(pod, job)
		switch written := m.patched[pod.UID]; {
		case !m.listed && state != untouched: // the cache may not show it yet
			m.patched[pod.UID] = pod
		case state != untouched:
			delete(m.patched, pod.UID)
		case written != nil && !foreign:
			pod = written
		}
		if isActive(pod) {
			out = append(out, pod)
		}
	}
	maps.DeleteFunc(m.patched, func(uid types.UID, _ *corev1.Pod) bool { return !seen[uid] })
	maps.DeleteFunc(m.refused, func(uid types.UID, _ refusal) bool { return !seen[uid] })
	m.listed = true
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		class := func(pod *corev1.Pod) int {
			_, refused := m.refused[pod.UID]
			switch state := m.stateOf(pod, job); {
			case state == unable || state == untouched && refused:
				return 2
			case state != untouched:
				return 0
			}
			return 1
		}
		return cmp.Or(class(a)-class(b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}
