// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// pickRequest returns which request of a pod is worked on, nil for none, and which others must report
// that they wait (CRR-06).
func pickRequest(requests []*kruise.ContainerRecreateRequest) (work *kruise.ContainerRecreateRequest, waiting []*kruise.ContainerRecreateRequest) {
	stage := map[kruise.ContainerRecreateRequestPhase]int{
		kruise.ContainerRecreateRequestRecreating: 0, kruise.ContainerRecreateRequestPending: 1, "": 2,
	}
	slices.SortFunc(requests, func(a, b *kruise.ContainerRecreateRequest) int {
		return cmp.Or(
			cmp.Compare(stage[a.Status.Phase], stage[b.Status.Phase]),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
	for _, r := range requests {
		switch {
		case isDone(r) || r.DeletionTimestamp != nil:
		case work == nil:
			work = r
		case r.Status.Phase == "":
			waiting = append(waiting, r)
		}
	}
	return work, waiting
}

// isDone reports whether a request has ended. The other phases in the schema are those of containers, not of
// requests.
func isDone(r *kruise.ContainerRecreateRequest) bool {
	switch r.Status.Phase {
	case "", kruise.ContainerRecreateRequestPending, kruise.ContainerRecreateRequestRecreating:
		return r.Status.CompletionTime != nil
	}
	return true
}

// isGraceStarted reports whether the manager has begun to take the pod out of its services, if it is
// to (CRR-07). The manager waits until the pod is out, by its own clock, and permits nothing before:
// the clock of this node may differ.
func isGraceStarted(r *kruise.ContainerRecreateRequest) bool {
	s := r.Spec.Strategy
	return s == nil || s.UnreadyGracePeriodSeconds == nil ||
		meta.FindStatusCondition(r.Status.Conditions, kruise.ContainerRecreateRequestPreRecreateGrace) != nil
}
