// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// ConvertTo fills the hub.
func (in *WorkloadSpread) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.WorkloadSpread)
	if !ok {
		return fmt.Errorf("converting to %T: a WorkloadSpread is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	out.ObjectMeta = src.ObjectMeta
	out.Spec = v1beta1.WorkloadSpreadSpec{
		TargetReference: src.Spec.TargetReference, TargetFilter: src.Spec.TargetFilter, ScheduleStrategy: src.Spec.ScheduleStrategy,
		Subsets: convertEach(src.Spec.Subsets, func(s *WorkloadSpreadSubset) v1beta1.WorkloadSpreadSubset {
			return v1beta1.WorkloadSpreadSubset{
				Name: s.Name, RequiredNodeSelector: s.RequiredNodeSelectorTerm, PreferredNodeSelector: s.PreferredNodeSelectorTerms,
				Tolerations: s.Tolerations, MaxReplicas: s.MaxReplicas, Patch: s.Patch,
			}
		}),
	}
	conditions := newTranslation(conditionsToHub, conditionsFromHub)
	conditions.restoreLists(&out.Annotations, conversiondata.NewerKey)
	subset := func(s *WorkloadSpreadSubsetStatus, at string) v1beta1.WorkloadSpreadSubsetStatus {
		return v1beta1.WorkloadSpreadSubsetStatus{
			Name: s.Name, Replicas: s.Replicas, MissingReplicas: s.MissingReplicas,
			CreatingPods: s.CreatingPods, DeletingPods: s.DeletingPods, Conditions: conditions.translateList(s.Conditions, at),
		}
	}
	out.Status = v1beta1.WorkloadSpreadStatus{
		ObservedGeneration: src.Status.ObservedGeneration, Conditions: src.Status.Conditions,
		SubsetStatuses:          eachAt(src.Status.SubsetStatuses, "", subset),
		VersionedSubsetStatuses: eachVersion(src.Status.VersionedSubsetStatuses, subset),
	}
	return conditions.storeLists(&out.Annotations, conversiondata.OlderKey)
}

// ConvertFrom reads the hub.
func (in *WorkloadSpread) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.WorkloadSpread)
	if !ok {
		return fmt.Errorf("converting from %T: a WorkloadSpread is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	in.ObjectMeta = src.ObjectMeta
	in.Spec = WorkloadSpreadSpec{
		TargetReference: src.Spec.TargetReference, TargetFilter: src.Spec.TargetFilter, ScheduleStrategy: src.Spec.ScheduleStrategy,
		Subsets: convertEach(src.Spec.Subsets, func(s *v1beta1.WorkloadSpreadSubset) WorkloadSpreadSubset {
			return WorkloadSpreadSubset{
				Name: s.Name, RequiredNodeSelectorTerm: s.RequiredNodeSelector, PreferredNodeSelectorTerms: s.PreferredNodeSelector,
				Tolerations: s.Tolerations, MaxReplicas: s.MaxReplicas, Patch: s.Patch,
			}
		}),
	}
	conditions := newTranslation(conditionsFromHub, conditionsToHub)
	conditions.restoreLists(&in.Annotations, conversiondata.OlderKey)
	subset := func(s *v1beta1.WorkloadSpreadSubsetStatus, at string) WorkloadSpreadSubsetStatus {
		return WorkloadSpreadSubsetStatus{
			Name: s.Name, Replicas: s.Replicas, MissingReplicas: s.MissingReplicas,
			CreatingPods: s.CreatingPods, DeletingPods: s.DeletingPods, Conditions: conditions.translateList(s.Conditions, at),
		}
	}
	in.Status = WorkloadSpreadStatus{
		ObservedGeneration: src.Status.ObservedGeneration, Conditions: src.Status.Conditions,
		SubsetStatuses:          eachAt(src.Status.SubsetStatuses, "", subset),
		VersionedSubsetStatuses: eachVersion(src.Status.VersionedSubsetStatuses, subset),
	}
	return conditions.storeLists(&in.Annotations, conversiondata.NewerKey)
}

// eachAt converts statuses of subsets, and says where each stands. Names may be there twice, so they say nothing.
func eachAt[From, To any](in []From, version string, convert func(*From, string) To) []To {
	at := -1
	return convertEach(in, func(item *From) To {
		at++
		return convert(item, strconv.Itoa(at)+version)
	})
}

func eachVersion[From, To any](in map[string][]From, convert func(*From, string) To) map[string][]To {
	if in == nil {
		return nil
	}
	out := make(map[string][]To, len(in))
	for version, items := range in {
		out[version] = eachAt(items, "/"+version, convert)
	}
	return out
}
