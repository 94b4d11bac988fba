// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// ConvertTo fills the hub. The spec is the same in both versions.
func (in *UnitedDeployment) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.UnitedDeployment)
	if !ok {
		return fmt.Errorf("converting to %T: a UnitedDeployment is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	out.ObjectMeta, out.Spec = src.ObjectMeta, src.Spec
	said := subsetsSaid{SubsetReplicas: src.Status.SubsetReplicas, UpdateStatus: src.Status.UpdateStatus, SubsetStatuses: src.Status.SubsetStatuses}
	revision, subsets := said.toHub()
	out.Status = v1beta1.UnitedDeploymentStatus{
		ObservedGeneration: src.Status.ObservedGeneration, Replicas: src.Status.Replicas, ReadyReplicas: src.Status.ReadyReplicas,
		UpdatedReplicas: src.Status.UpdatedReplicas, UpdatedReadyReplicas: src.Status.UpdatedReadyReplicas,
		ReservedPods: src.Status.ReservedPods, CurrentRevision: src.Status.CurrentRevision, UpdatedRevision: revision,
		CollisionCount: src.Status.CollisionCount, SubsetStatuses: subsets,
		Conditions: src.Status.Conditions, LabelSelector: src.Status.LabelSelector,
	}
	if equality.Semantic.DeepEqual(subsetsFromHub(revision, subsets), said) {
		said = subsetsSaid{}
	}
	return conversiondata.StoreFields(&out.Annotations, conversiondata.OlderKey, said)
}

// ConvertFrom reads the hub.
func (in *UnitedDeployment) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.UnitedDeployment)
	if !ok {
		return fmt.Errorf("converting from %T: a UnitedDeployment is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	in.ObjectMeta, in.Spec = src.ObjectMeta, src.Spec
	said := subsetsFromHub(src.Status.UpdatedRevision, src.Status.SubsetStatuses)
	var kept subsetsSaid
	if conversiondata.RestoreFields(&in.Annotations, conversiondata.OlderKey, &kept) {
		revision, subsets := kept.toHub()
		if revision == src.Status.UpdatedRevision && equality.Semantic.DeepEqual(subsets, src.Status.SubsetStatuses) {
			said = kept
		}
	}
	in.Status = UnitedDeploymentStatus{
		ObservedGeneration: src.Status.ObservedGeneration, Replicas: src.Status.Replicas, ReadyReplicas: src.Status.ReadyReplicas,
		UpdatedReplicas: src.Status.UpdatedReplicas, UpdatedReadyReplicas: src.Status.UpdatedReadyReplicas,
		ReservedPods: src.Status.ReservedPods, CurrentRevision: src.Status.CurrentRevision,
		CollisionCount: src.Status.CollisionCount, SubsetStatuses: said.SubsetStatuses,
		SubsetReplicas: said.SubsetReplicas, UpdateStatus: said.UpdateStatus,
		Conditions: src.Status.Conditions, LabelSelector: src.Status.LabelSelector,
	}
	return nil
}

// subsetsSaid is how v1alpha1 says what the subsets do: their statuses, and two maps of it that are older than these. It is
// kept in conversiondata.OlderKey where the maps say something else.
type subsetsSaid struct {
	SubsetReplicas map[string]int32                       `json:"subsetReplicas,omitempty"`
	UpdateStatus   *UpdateStatus                          `json:"updateStatus,omitempty"`
	SubsetStatuses []v1beta1.UnitedDeploymentSubsetStatus `json:"subsetStatuses,omitempty"`
}

// toHub adds a status for each subset that only the maps know, as those of releases that had no statuses do.
func (s subsetsSaid) toHub() (string, []v1beta1.UnitedDeploymentSubsetStatus) {
	update := UpdateStatus{}
	if s.UpdateStatus != nil {
		update = *s.UpdateStatus
	}
	missing := map[string]bool{}
	for _, names := range []map[string]int32{s.SubsetReplicas, update.CurrentPartitions} {
		for name := range names {
			missing[name] = true
		}
	}
	for i := range s.SubsetStatuses {
		delete(missing, s.SubsetStatuses[i].Name)
	}
	subsets := s.SubsetStatuses
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		subsets = append(subsets, v1beta1.UnitedDeploymentSubsetStatus{
			Name: name, Replicas: s.SubsetReplicas[name], Partition: update.CurrentPartitions[name],
		})
	}
	return update.UpdatedRevision, subsets
}

func subsetsFromHub(revision string, subsets []v1beta1.UnitedDeploymentSubsetStatus) subsetsSaid {
	said := subsetsSaid{SubsetStatuses: subsets}
	if revision == "" && len(subsets) == 0 {
		return said
	}
	said.UpdateStatus = &UpdateStatus{UpdatedRevision: revision}
	if len(subsets) > 0 {
		said.SubsetReplicas, said.UpdateStatus.CurrentPartitions = map[string]int32{}, map[string]int32{}
	}
	for i := range subsets {
		said.SubsetReplicas[subsets[i].Name] = subsets[i].Replicas
		said.UpdateStatus.CurrentPartitions[subsets[i].Name] = subsets[i].Partition
	}
	return said
}
