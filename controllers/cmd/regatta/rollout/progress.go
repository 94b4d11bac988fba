package rollout

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// progress is how far a rollout is, by the status of its CloneSet.
type progress struct {
	wanted    int  // pods in all
	target    int  // pods to be updated
	observed  bool // the status is of the newest spec
	pods      int
	available int
	updated   int
	done      int // updated and available
	deadline  string
}

func progressOf(set *kruise.CloneSet) progress {
	s := &set.Status
	p := progress{
		wanted: int(ptr.Deref(set.Spec.Replicas, 1)), target: int(s.ExpectedUpdatedReplicas),
		observed: s.ObservedGeneration >= set.Generation,
		pods:     int(s.Replicas), available: int(s.AvailableReplicas),
		updated: int(s.UpdatedReplicas), done: int(s.UpdatedAvailableReplicas),
	}
	for _, c := range s.Conditions {
		if c.Type == kruise.CloneSetConditionProgressing && c.Status == corev1.ConditionFalse && c.Reason == kruise.CloneSetProgressDeadlineExceededReason {
			p.deadline = c.Message
		}
	}
	return p
}

// complete says whether there is nothing left to wait for: as many pods as are
// wanted, and of those that are to be updated all are, and available.
func (p progress) complete() bool {
	return p.observed && p.pods == p.wanted && p.done >= p.target && p.available >= p.target
}

func (p progress) String() string {
	return fmt.Sprintf("%d of %d pods are updated, %d of them available", p.updated, p.target, p.done)
}

// strategy is what bounds a rollout, in a line.
func strategy(set *kruise.CloneSet) string {
	u := set.Spec.UpdateStrategy
	if u.Type == kruise.OnDeleteCloneSetUpdateStrategyType {
		return "OnDelete: a pod is updated when somebody deletes it"
	}
	out := []string{"RollingUpdate"}
	r := u.RollingUpdate
	if r == nil {
		return out[0]
	}
	if r.PodUpdatePolicy != "" {
		out = append(out, string(r.PodUpdatePolicy))
	}
	if r.MaxUnavailable != nil {
		out = append(out, "maxUnavailable "+r.MaxUnavailable.String())
	}
	if r.MaxSurge != nil && r.MaxSurge.String() != "0" {
		out = append(out, "maxSurge "+r.MaxSurge.String())
	}
	if r.Partition != nil && r.Partition.String() != "0" {
		out = append(out, "partition "+r.Partition.String())
	}
	if r.Paused {
		out = append(out, "paused")
	}
	return strings.Join(out, ", ")
}
