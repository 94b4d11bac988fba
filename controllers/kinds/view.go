// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
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
	// KeepsOld is true if the strategy is OnDelete or NotUpdate, which lets pods stay at an old revision that Target counts.
	KeepsOld bool
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

// IsSettled reports whether nothing is left to do: all pods exist and are available, and all that are to be updated are.
func (v View) IsSettled() bool {
	return v.Observed && v.Pods == v.Wanted && v.Available >= v.Wanted && (v.KeepsOld || v.Done >= v.Target)
}

// troubles are the conditions that report a failure or a hold: by type, the status that means trouble. Those of holds are in
// holds too.
var (
	troubles = map[string]corev1.ConditionStatus{
		string(kruise.CloneSetConditionFailedScale):      corev1.ConditionTrue,
		string(kruise.CloneSetConditionFailedUpdate):     corev1.ConditionTrue,
		string(kruise.StatefulSetFailedCreatePod):        corev1.ConditionTrue,
		string(kruise.StatefulSetFailedUpdatePod):        corev1.ConditionTrue,
		string(kruise.StatefulSetVolumeClaimsDiffer):     corev1.ConditionTrue,
		string(kruise.UnitedDeploymentSubsetFailure):     corev1.ConditionTrue,
		string(kruise.UnitedDeploymentPlacing):           corev1.ConditionFalse,
		string(kruise.UnitedDeploymentSubsetUpdated):     corev1.ConditionFalse,
		string(kruise.UnitedDeploymentSubsetProvisioned): corev1.ConditionFalse,
		string(appsv1.DeploymentReplicaFailure):          corev1.ConditionTrue,
		failure.ConditionType:                            corev1.ConditionTrue,
		kruise.UpdateHeld:                                corev1.ConditionTrue,
		string(kruise.UnitedDeploymentAllocationHeld):    corev1.ConditionTrue,
	}
	holds = map[string]bool{kruise.UpdateHeld: true, string(kruise.UnitedDeploymentAllocationHeld): true}
)

// IsTrouble reports whether the condition means that something fails or is held.
func (c Condition) IsTrouble() bool { return c.Status != "" && troubles[c.Type] == c.Status }

// IsHeld reports whether a policy or a budget holds the update.
func (v View) IsHeld() bool {
	return slices.ContainsFunc(v.Conditions, func(c Condition) bool { return c.IsTrouble() && holds[c.Type] })
}

// FirstTrouble returns the first condition that reports a failure, or else the first that reports a hold; nil if there is none.
func (v View) FirstTrouble() *Condition {
	var held *Condition
	for i := range v.Conditions {
		switch c := &v.Conditions[i]; {
		case !c.IsTrouble():
		case !holds[c.Type]:
			return c
		case held == nil:
			held = c
		}
	}
	return held
}

// CompletionText is the state of a complete rollout, in a line.
func (v View) CompletionText() string {
	text := fmt.Sprintf("%d of %d pods are updated and available", v.Done, v.Wanted)
	if v.Target < v.Wanted {
		text += fmt.Sprintf("; the partition lets %d pods keep their revision", v.Wanted-v.Target)
	}
	return text
}

// ProgressText is the progress of the rollout, in a line.
func (v View) ProgressText() string {
	return fmt.Sprintf("%d of %d pods are updated, %d of them available", v.Updated, v.Target, v.Done)
}

// ViewCloneSet is the view of a CloneSet with a status.
func ViewCloneSet(set *kruise.CloneSet, s *kruise.CloneSetStatus) View {
	v := View{
		Selector: set.Spec.Selector,
		Wanted:   int(ptr.Deref(set.Spec.Replicas, 1)), Target: int(s.ExpectedUpdatedReplicas),
		Observed: s.ObservedGeneration >= set.Generation,
		Pods:     int(s.Replicas), Available: int(s.AvailableReplicas),
		Updated: int(s.UpdatedReplicas), Done: int(s.UpdatedAvailableReplicas),
		UpdateRevision: s.UpdateRevision, Strategy: strategyText(set.Spec.UpdateStrategy),
		KeepsOld: set.Spec.UpdateStrategy.Type == kruise.OnDeleteCloneSetUpdateStrategyType,
	}
	for _, c := range s.Conditions {
		v.Conditions = append(v.Conditions, Condition{string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime})
		if c.Type == kruise.CloneSetConditionProgressing && c.Status == corev1.ConditionFalse && c.Reason == kruise.CloneSetProgressDeadlineExceededReason {
			v.Deadline = c.Message
		}
	}
	return v
}

// ViewStatefulSet is the view of an Advanced StatefulSet with a status.
func ViewStatefulSet(set *kruise.StatefulSet, s *kruise.StatefulSetStatus) View {
	wanted, partition := int(ptr.Deref(set.Spec.Replicas, 1)), 0
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
		KeepsOld: set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
	}
	for _, c := range s.Conditions {
		v.Conditions = append(v.Conditions, Condition{string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime})
	}
	return v
}

// ViewDaemonSet is the view of an Advanced DaemonSet with a status.
func ViewDaemonSet(set *kruise.DaemonSet, s *kruise.DaemonSetStatus) View {
	wanted, partition, keepsOld := int(s.DesiredNumberScheduled), 0, set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
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
	target := max(wanted-partition, 0)
	if set.Spec.ScaleStrategy.PartitionedScaling && partition > 0 { // nodes behind the partition get no new pod
		wanted = min(max(int(s.CurrentNumberScheduled), target), wanted)
	}
	v := View{
		Selector: set.Spec.Selector, Wanted: wanted, Target: target,
		Observed: s.ObservedGeneration >= set.Generation,
		Pods:     int(s.CurrentNumberScheduled), Available: int(s.NumberAvailable),
		Updated: int(s.UpdatedNumberScheduled), Done: min(int(s.UpdatedNumberScheduled), int(s.NumberAvailable)),
		UpdateRevision: s.UpdateRevision, Strategy: strings.Join(bounds, ", "), KeepsOld: keepsOld,
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

// ViewSidecarSet is the view of a SidecarSet with a status. It counts pods that are ready in place of those that are available: the
// status has no others.
func ViewSidecarSet(set *kruise.SidecarSet, s *kruise.SidecarSetStatus) View {
	matched := int(s.MatchedPods)
	kept, err := budget.ResolvePartition(set.Spec.UpdateStrategy.Partition, matched)
	if err != nil {
		kept = matched // as the manager does: no pod is updated until the partition can be read
	}
	v := View{
		Selector: set.Spec.Selector, Wanted: matched, Target: matched - min(max(kept, 0), matched),
		Observed: s.ObservedGeneration >= set.Generation, Pods: matched, Available: int(s.ReadyPods),
		Updated: int(s.UpdatedPods), Done: int(s.UpdatedReadyPods), UpdateRevision: s.LatestRevision,
		KeepsOld: set.Spec.UpdateStrategy.Type == kruise.NotUpdateSidecarSetStrategyType,
	}
	for _, c := range s.Conditions {
		v.Conditions = append(v.Conditions, Condition{
			Type: c.Type, Status: corev1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return v
}

// ViewUnitedDeployment is the view of a UnitedDeployment with a status. It counts pods that are ready in place of those that are
// available: the status has no others.
func ViewUnitedDeployment(d *kruise.UnitedDeployment, s *kruise.UnitedDeploymentStatus) View {
	wanted := wantedOfSubsets(d)
	v := View{
		Selector: d.Spec.Selector, Wanted: wanted, Target: max(wanted-keptOfSubsets(d, s), 0),
		Observed: s.ObservedGeneration >= d.Generation, Pods: int(s.Replicas), Available: int(s.ReadyReplicas),
		Updated: int(s.UpdatedReplicas), Done: int(s.UpdatedReadyReplicas), UpdateRevision: s.UpdatedRevision,
		KeepsOld: keepsOldInSubsets(&d.Spec.Template),
	}
	for _, c := range s.Conditions {
		v.Conditions = append(v.Conditions, Condition{
			Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return v
}

// wantedOfSubsets is how many pods a UnitedDeployment is to have. It may leave that to its subsets, each of which
// has a number of its own then.
func wantedOfSubsets(d *kruise.UnitedDeployment) int {
	if d.Spec.Replicas != nil || len(d.Spec.Topology.Subsets) == 0 {
		return int(ptr.Deref(d.Spec.Replicas, 1))
	}
	own := 0
	for _, subset := range d.Spec.Topology.Subsets {
		if subset.Replicas == nil {
			return 1
		}
		own += subset.Replicas.IntValue()
	}
	return own
}

// keptOfSubsets is how many pods the partitions of subsets keep at their revision. The partition in the status is
// no measure: a policy that holds a subset raises it. Deployments have no partition.
func keptOfSubsets(d *kruise.UnitedDeployment, s *kruise.UnitedDeploymentStatus) int {
	if d.Spec.UpdateStrategy.ManualUpdate == nil || d.Spec.Template.DeploymentTemplate != nil {
		return 0
	}
	kept := 0
	for _, subset := range s.SubsetStatuses {
		kept += int(min(max(d.Spec.UpdateStrategy.ManualUpdate.Partitions[subset.Name], 0), subset.Replicas))
	}
	return kept
}

// keepsOldInSubsets reports whether the strategy of the subsets is OnDelete.
func keepsOldInSubsets(t *kruise.SubsetTemplate) bool {
	switch {
	case t.StatefulSetTemplate != nil:
		return t.StatefulSetTemplate.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	case t.AdvancedStatefulSetTemplate != nil:
		return t.AdvancedStatefulSetTemplate.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	case t.CloneSetTemplate != nil:
		return t.CloneSetTemplate.Spec.UpdateStrategy.Type == kruise.OnDeleteCloneSetUpdateStrategyType
	}
	return false
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
