// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// askHold evaluates on which nodes a new pod is held at the current revision. It leaves out nodes whose pod the update has
// deleted before.
func (s *scaler) askHold(ctx context.Context, nodes []string) error {
	current := s.currentRevision()
	if current.Name == s.t.UpdateRevision() {
		return nil
	}
	replaced := s.r.ReplacedNames(s.f)
	var asked []string
	var missing []*corev1.Pod
	for _, n := range nodes {
		if replaced[n] {
			continue
		}
		pod, err := s.newPod(n, current)
		if err != nil {
			return err
		}
		asked, missing = append(asked, n), append(missing, pod)
	}
	if len(missing) == 0 {
		return nil
	}
	hold := s.r.UpdateHold(ctx, s.f, len(missing), false, missing...)
	for i, n := range asked {
		s.held[n] = hold.Missing[i]
	}
	return nil
}

// revisionOf is the revision that a new pod of a node gets.
func (s *scaler) revisionOf(node string) *appsv1.ControllerRevision {
	if s.held[node] {
		return s.currentRevision()
	}
	return s.t.History.Update
}

// currentRevision is the revision before the update. If the status does not name one, it is from a release that did not write it, or
// the DaemonSet is new. Then it is the revision that most of the pods have that are not updated.
func (s *scaler) currentRevision() *appsv1.ControllerRevision {
	h := s.t.History
	if slices.ContainsFunc(h.All, func(r *appsv1.ControllerRevision) bool { return r.Name == s.set.Status.CurrentRevision }) {
		return h.Current
	}
	most, found := 0, h.Update
	for _, r := range slices.Backward(h.All) {
		n := 0
		for _, at := range s.sites {
			for _, p := range at.pods {
				incrementIf(&n, r.Name != h.Update.Name && !p.Facts.Updated && s.t.HasRevision(p.Pod, r.Name))
			}
		}
		if n > most {
			most, found = n, r
		}
	}
	return found
}

// currentAfter is the current revision once the round is over. It is that of the template when each node that should have a pod runs one
// of that revision, and no pod of another. While no node should have a pod, no node shows that the template works.
func (s *scaler) currentAfter() *appsv1.ControllerRevision {
	wanted := 0
	for _, at := range s.sites {
		if len(at.runningPods(false)) > 0 || at.shouldRun() && len(at.runningPods(true)) == 0 {
			return s.currentRevision()
		}
		incrementIf(&wanted, at.shouldRun())
	}
	if wanted == 0 {
		return s.currentRevision()
	}
	return s.t.History.Update
}

// leaveUnnamed omits the current revision if the status names none and would not change otherwise: a DaemonSet that is taken over
// from OpenKruise is not written for it.
func (s *scaler) leaveUnnamed(status *kruise.DaemonSetStatus) {
	was := &s.set.Status
	if was.CurrentRevision != "" {
		return
	}
	without := *status
	without.CurrentRevision = ""
	if equality.Semantic.DeepEqual(&without, was) {
		*status = without
	}
}
