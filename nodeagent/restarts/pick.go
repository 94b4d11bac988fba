// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// pick says which request of a pod is worked on, nil for none, and which others have
// to say that they wait (CRR-06).
func pick(requests []*kruise.ContainerRecreateRequest) (work *kruise.ContainerRecreateRequest, waiting []*kruise.ContainerRecreateRequest) {
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
		case done(r) || r.DeletionTimestamp != nil:
		case work == nil:
			work = r
		case r.Status.Phase == "":
			waiting = append(waiting, r)
		}
	}
	return work, waiting
}

// done: the other phases that the schema takes are of containers, not of requests.
func done(r *kruise.ContainerRecreateRequest) bool {
	switch r.Status.Phase {
	case "", kruise.ContainerRecreateRequestPending, kruise.ContainerRecreateRequestRecreating:
		return r.Status.CompletionTime != nil
	}
	return true
}

// drained says how long the pod still has to leave its services (CRR-07), and whether
// the manager has begun to take it out.
func drained(r *kruise.ContainerRecreateRequest, now time.Time) (wait time.Duration, begun bool) {
	s := r.Spec.Strategy
	if s == nil || s.UnreadyGracePeriodSeconds == nil {
		return 0, true
	}
	c := meta.FindStatusCondition(r.Status.Conditions, kruise.ContainerRecreateRequestPreRecreateGrace)
	if c == nil {
		return 0, false
	}
	return max(0, c.LastTransitionTime.Add(time.Duration(*s.UnreadyGracePeriodSeconds)*time.Second).Sub(now)), true
}
