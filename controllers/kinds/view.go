// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
)

// View is the state of an object's rollout, in the same form for all kinds.
type View struct {
	// Selector selects the pods.
	Selector *metav1.LabelSelector
	// Wanted is how many pods there should be, Target how many of them should be updated.
	Wanted, Target int
	// Observed is true when the status is of the newest spec.
	Observed bool
	// Pods, Available and Updated count the existing pods; Done counts those that are updated and available.
	Pods, Available, Updated, Done int
	// UpdateRevision is the newest revision.
	UpdateRevision string
	// Strategy describes the limits of the rollout, in a line.
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

// IsComplete reports whether the rollout is complete: as many pods exist as are wanted, and all pods
// that are to be updated are updated and available.
func (v View) IsComplete() bool {
	return v.Observed && v.Pods == v.Wanted && v.Done >= v.Target && v.Available >= v.Target
}

// ProgressText is the progress of the rollout, in a line.
func (v View) ProgressText() string {
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
		UpdateRevision: s.UpdateRevision, Strategy: strategyText(set.Spec.UpdateStrategy),
	}
	for _, c := range s.Conditions {
		v.Conditions = append(v.Conditions, Condition{string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime})
		if c.Type == kruise.CloneSetConditionProgressing && c.Status == corev1.ConditionFalse && c.Reason == kruise.CloneSetProgressDeadlineExceededReason {
			v.Deadline = c.Message
		}
	}
	return v
}

func statefulSet(set *kruise.StatefulSet) View {
	s, wanted, partition := &set.Status, int(ptr.Deref(set.Spec.Replicas, 1)), 0
	bounds := []string{"RollingUpdate"}
	switch u := set.Spec.UpdateStrategy; {
	case u.Type == appsv1.OnDeleteStatefulSetStrategyType:
		bounds = []string{onDelete}
	case u.RollingUpdate != nil:
		partition = int(ptr.Deref(u.RollingUpdate.Partition, 0))
		if u.RollingUpdate.MaxUnavailable != nil {
			bounds = append(bounds, "maxUnavailable "+u.RollingUpdate.MaxUnavailable.String())
		}
		if partition > 0 {
			bounds = append(bounds, fmt.Sprintf("partition %d", partition))
		}
		if u.RollingUpdate.Paused {
			bounds = append(bounds, "paused")
		}
	}
	v := View{
		Selector: set.Spec.Selector, Wanted: wanted, Target: max(wanted-partition, 0),
		Observed: s.ObservedGeneration >= set.Generation,
		Pods:     int(s.Replicas), Available: int(s.AvailableReplicas),
		Updated: int(s.UpdatedReplicas), Done: int(s.UpdatedAvailableReplicas),
		UpdateRevision: s.UpdateRevision, Strategy: strings.Join(bounds, ", "),
	}
	for _, c := range s.Conditions {
		v.Conditions = append(v.Conditions, Condition{string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime})
	}
	return v
}

func daemonSet(set *kruise.DaemonSet) View {
	s := &set.Status
	wanted, partition := int(s.DesiredNumberScheduled), 0
	bounds := []string{"RollingUpdate"}
	switch u := set.Spec.UpdateStrategy; {
	case u.Type == appsv1.OnDeleteDaemonSetStrategyType:
		bounds = []string{onDelete}
	case u.RollingUpdate != nil:
		bounds = daemonSetBounds(u.RollingUpdate)
		if u.RollingUpdate.Partition != nil {
			partition, _ = budget.ResolveShare(*u.RollingUpdate.Partition, wanted) // admission has validated it
		}
	}
	v := View{
		Selector: set.Spec.Selector, Wanted: wanted, Target: max(wanted-partition, 0),
		Observed: s.ObservedGeneration >= set.Generation,
		Pods:     int(s.CurrentNumberScheduled), Available: int(s.NumberAvailable),
		Updated: int(s.UpdatedNumberScheduled), Done: min(int(s.UpdatedNumberScheduled), int(s.NumberAvailable)),
		UpdateRevision: s.UpdateRevision, Strategy: strings.Join(bounds, ", "),
	}
	for _, c := range s.Conditions {
		v.Conditions = append(v.Conditions, Condition{string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime})
	}
	return v
}

func daemonSetBounds(r *kruise.RollingUpdateDaemonSet) []string {
	out := []string{"RollingUpdate"}
	if r.Type != "" {
		out = append(out, string(r.Type))
	}
	if r.MaxUnavailable != nil && r.MaxUnavailable.String() != "0" {
		out = append(out, "maxUnavailable "+r.MaxUnavailable.String())
	}
	if r.MaxSurge != nil && r.MaxSurge.String() != "0" {
		out = append(out, "maxSurge "+r.MaxSurge.String())
	}
	if r.Partition != nil && r.Partition.String() != "0" {
		out = append(out, "partition "+r.Partition.String())
	}
	if r.Selector != nil {
		out = append(out, "on nodes with "+metav1.FormatLabelSelector(r.Selector))
	}
	if ptr.Deref(r.Paused, false) {
		out = append(out, "paused")
	}
	return out
}

// onDelete is the strategy OnDelete in a line.
const onDelete = "OnDelete: a pod is updated when a client deletes it"

// strategyText describes the limits of a rollout, in a line.
func strategyText(u kruise.CloneSetUpdateStrategy) string {
	if u.Type == kruise.OnDeleteCloneSetUpdateStrategyType {
		return onDelete
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
