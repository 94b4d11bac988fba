// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// View is what an object says of its rollout, the same for all kinds.
type View struct {
	// Selector selects the pods.
	Selector *metav1.LabelSelector
	// Wanted is how many pods there should be, Target how many of them updated.
	Wanted, Target int
	// Observed is true when the status is of the newest spec.
	Observed bool
	// Pods, Available and Updated count what there is; Done are updated and available.
	Pods, Available, Updated, Done int
	// UpdateRevision is the newest revision.
	UpdateRevision string
	// Strategy is what bounds the rollout, in a line.
	Strategy string
	// Deadline is why the rollout takes too long, "" if it does not.
	Deadline   string
	Conditions []Condition
}

// Condition is one of the conditions of an object.
type Condition struct {
	Type               string
	Status             corev1.ConditionStatus
	Reason, Message    string
	LastTransitionTime metav1.Time
}

// Complete says whether there is nothing left to wait for: as many pods as are wanted,
// and of those that are to be updated all are, and available.
func (v View) Complete() bool {
	return v.Observed && v.Pods == v.Wanted && v.Done >= v.Target && v.Available >= v.Target
}

// Progress is how far the rollout is, in a line.
func (v View) Progress() string {
	return fmt.Sprintf("%d of %d pods are updated, %d of them available", v.Updated, v.Target, v.Done)
}

func cloneSet(set *kruise.CloneSet) View {
	s := &set.Status
	v := View{
		Selector: set.Spec.Selector,
		Wanted:   int(ptr.Deref(set.Spec.Replicas, 1)), Target: int(s.ExpectedUpdatedReplicas),
		Observed: s.ObservedGeneration >= set.Generation,
		Pods:     int(s.Replicas), Available: int(s.AvailableReplicas),
		Updated: int(s.UpdatedReplicas), Done: int(s.UpdatedAvailableReplicas),
		UpdateRevision: s.UpdateRevision, Strategy: strategy(set.Spec.UpdateStrategy),
	}
	for _, c := range s.Conditions {
		v.Conditions = append(v.Conditions, Condition{string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime})
		if c.Type == kruise.CloneSetConditionProgressing && c.Status == corev1.ConditionFalse && c.Reason == kruise.CloneSetProgressDeadlineExceededReason {
			v.Deadline = c.Message
		}
	}
	return v
}

// strategy is what bounds a rollout, in a line.
func strategy(u kruise.CloneSetUpdateStrategy) string {
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
