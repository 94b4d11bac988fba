// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// PodUpdatePolicyKey annotates a v1alpha1 CloneSet of type OnDelete whose v1beta1 form keeps a rollingUpdate block for
// later. OpenKruise drops the block as soon as a v1alpha1 client writes the object; with this annotation it survives:
// its value is podUpdatePolicy, which has no other place here, and all else of the block stands in updateStrategy.
const PodUpdatePolicyKey = "conversion.regatta.sh/pod-update-policy"

// newerCloneSet is what this version cannot say, or says in other marks.
type newerCloneSet struct {
	UpdateStrategy *v1beta1.CloneSetUpdateStrategy `json:"updateStrategy,omitempty"`
	Labels         map[string]string               `json:"labels,omitempty"`
	Annotations    map[string]string               `json:"annotations,omitempty"`
}

// olderCloneSet is what v1beta1 cannot say: a type that it does not know (the webhook refuses it), and the fields
// imagePreDownload*, for which the annotations count here (the webhook warns).
type olderCloneSet struct {
	UpdateStrategy *CloneSetUpdateStrategy `json:"updateStrategy,omitempty"`
}

// ConvertTo fills the hub. What was kept counts only as long as it means what the fields say.
func (in *CloneSet) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.CloneSet)
	if !ok {
		return fmt.Errorf("converting to %T: a CloneSet is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	template, claims := src.Spec.Template, src.Spec.VolumeClaimTemplates
	src.Spec.Template, src.Spec.VolumeClaimTemplates = corev1.PodTemplateSpec{}, nil // nothing below is about them,
	src.TypeMeta = metav1.TypeMeta{}                                                 // nor about the wire
	var newer newerCloneSet
	kept := conversiondata.RestoreFields(&src.Annotations, conversiondata.NewerKey, &newer)
	said := toHub(src)
	if kept {
		if whole := newer.restoreFields(said.DeepCopy()); equality.Semantic.DeepEqual(fromHub(whole), src) {
			said = whole
		}
	}
	var older olderCloneSet
	if !equality.Semantic.DeepEqual(fromHub(said).Spec, src.Spec) {
		older.UpdateStrategy = src.Spec.UpdateStrategy.DeepCopy()
	}
	said.DeepCopyInto(out)
	out.Spec.Template, out.Spec.VolumeClaimTemplates = template, claims
	return conversiondata.StoreFields(&out.Annotations, conversiondata.OlderKey, older)
}

// ConvertFrom reads the hub.
func (in *CloneSet) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.CloneSet)
	if !ok {
		return fmt.Errorf("converting from %T: a CloneSet is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	template, claims := src.Spec.Template, src.Spec.VolumeClaimTemplates
	src.Spec.Template, src.Spec.VolumeClaimTemplates = corev1.PodTemplateSpec{}, nil
	src.TypeMeta = metav1.TypeMeta{}
	var older olderCloneSet
	kept := conversiondata.RestoreFields(&src.Annotations, conversiondata.OlderKey, &older) && older.UpdateStrategy != nil
	said := fromHub(src)
	if kept {
		whole := said.DeepCopy()
		whole.Spec.UpdateStrategy = *older.UpdateStrategy
		if equality.Semantic.DeepEqual(toHub(whole), src) {
			said = whole
		}
	}
	var newer newerCloneSet
	if !equality.Semantic.DeepEqual(toHub(said), src) {
		newer = newerCloneSet{src.Spec.UpdateStrategy.DeepCopy(), mirroredMetadata(src.Labels), mirroredMetadata(src.Annotations)}
	}
	said.DeepCopyInto(in)
	in.Spec.Template, in.Spec.VolumeClaimTemplates = template, claims
	return conversiondata.StoreFields(&in.Annotations, conversiondata.NewerKey, newer)
}

// restoreFields puts what was kept back.
func (n *newerCloneSet) restoreFields(hub *v1beta1.CloneSet) *v1beta1.CloneSet {
	if n.UpdateStrategy != nil {
		hub.Spec.UpdateStrategy = *n.UpdateStrategy.DeepCopy()
	}
	for _, both := range []struct {
		marks *map[string]string
		kept  map[string]string
	}{{&hub.Labels, n.Labels}, {&hub.Annotations, n.Annotations}} {
		for key := range mirroredMetadata(*both.marks) {
			conversiondata.RemoveMetadata(both.marks, key)
		}
		for key, text := range both.kept {
			conversiondata.SetMetadata(both.marks, key, text)
		}
	}
	return hub
}

// mirroredMetadata are the marks with which this version says what v1beta1 has fields for.
func mirroredMetadata(all map[string]string) (out map[string]string) {
	for _, key := range []string{
		v1beta1.CloneSetScalingExcludePreparingDeleteKey, v1beta1.ImagePreDownloadParallelismKey,
		v1beta1.ImagePreDownloadTimeoutSecondsKey, v1beta1.ImagePreDownloadMinUpdatedReadyPodsKey,
	} {
		if text, ok := all[key]; ok {
			conversiondata.SetMetadata(&out, key, text)
		}
	}
	return out
}

// toHub says in the words of v1beta1 what both versions can say.
func toHub(in *CloneSet) *v1beta1.CloneSet {
	src := in.DeepCopy()
	out := &v1beta1.CloneSet{ObjectMeta: src.ObjectMeta, Status: src.Status}
	out.Spec = v1beta1.CloneSetSpec{
		Replicas: src.Spec.Replicas, Selector: src.Spec.Selector, RevisionHistoryLimit: src.Spec.RevisionHistoryLimit,
		MinReadySeconds: src.Spec.MinReadySeconds, Lifecycle: src.Spec.Lifecycle,
		ProgressDeadlineSeconds: src.Spec.ProgressDeadlineSeconds,
		ScaleStrategy: v1beta1.CloneSetScaleStrategy{
			PodsToDelete:           src.Spec.ScaleStrategy.PodsToDelete,
			MaxUnavailable:         src.Spec.ScaleStrategy.MaxUnavailable,
			EnablePVCReuse:         !src.Spec.ScaleStrategy.DisablePVCReuse,
			ExcludePreparingDelete: src.Labels[v1beta1.CloneSetScalingExcludePreparingDeleteKey] == "true",
		},
	}
	out.Spec.UpdateStrategy = strategyToHub(&src.Spec.UpdateStrategy, src.Annotations)
	conversiondata.RemoveMetadata(&out.Annotations, PodUpdatePolicyKey)
	return out
}

// fromHub says in the words of v1alpha1 what both can say. Labels and annotations follow the fields.
func fromHub(hub *v1beta1.CloneSet) *CloneSet {
	src := hub.DeepCopy()
	in := &CloneSet{ObjectMeta: src.ObjectMeta, Status: src.Status}
	in.Spec = CloneSetSpec{
		Replicas: src.Spec.Replicas, Selector: src.Spec.Selector, RevisionHistoryLimit: src.Spec.RevisionHistoryLimit,
		MinReadySeconds: src.Spec.MinReadySeconds, Lifecycle: src.Spec.Lifecycle,
		ProgressDeadlineSeconds: src.Spec.ProgressDeadlineSeconds,
		ScaleStrategy: CloneSetScaleStrategy{
			PodsToDelete:    src.Spec.ScaleStrategy.PodsToDelete,
			MaxUnavailable:  src.Spec.ScaleStrategy.MaxUnavailable,
			DisablePVCReuse: !src.Spec.ScaleStrategy.EnablePVCReuse,
		},
	}
	key := v1beta1.CloneSetScalingExcludePreparingDeleteKey
	if src.Spec.ScaleStrategy.ExcludePreparingDelete {
		conversiondata.SetMetadata(&in.Labels, key, "true")
	} else if in.Labels[key] == "true" {
		conversiondata.RemoveMetadata(&in.Labels, key)
	}
	in.Spec.UpdateStrategy = strategyFromHub(&src.Spec.UpdateStrategy, &in.ObjectMeta)
	return in
}

func strategyToHub(in *CloneSetUpdateStrategy, annotations map[string]string) v1beta1.CloneSetUpdateStrategy {
	policy := v1beta1.RecreatePodUpdatePolicyType
	out := v1beta1.CloneSetUpdateStrategy{Type: v1beta1.RollingUpdateCloneSetUpdateStrategyType}
	switch in.Type {
	case InPlaceIfPossibleCloneSetUpdateStrategyType:
		policy = v1beta1.InPlaceIfPossiblePodUpdatePolicyType
	case InPlaceOnlyCloneSetUpdateStrategyType:
		policy = v1beta1.InPlaceOnlyPodUpdatePolicyType
	case OnDeleteCloneSetUpdateStrategyType:
		out.Type = v1beta1.OnDeleteCloneSetUpdateStrategyType
		kept, ok := annotations[PodUpdatePolicyKey]
		if !ok {
			return out
		}
		policy = v1beta1.PodUpdatePolicyType(kept)
	}
	out.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: policy, Partition: in.Partition, MaxUnavailable: in.MaxUnavailable, MaxSurge: in.MaxSurge,
		Paused: in.Paused, PriorityStrategy: in.PriorityStrategy, ScatterStrategy: in.ScatterStrategy,
		InPlaceUpdateStrategy: inPlaceToHub(in.InPlaceUpdateStrategy, annotations),
	}
	return out
}

func strategyFromHub(in *v1beta1.CloneSetUpdateStrategy, meta *metav1.ObjectMeta) CloneSetUpdateStrategy {
	conversiondata.RemoveMetadata(&meta.Annotations, PodUpdatePolicyKey)
	out := CloneSetUpdateStrategy{Type: RecreateCloneSetUpdateStrategyType}
	if in.Type == v1beta1.OnDeleteCloneSetUpdateStrategyType {
		out.Type = OnDeleteCloneSetUpdateStrategyType
	}
	rolling := in.RollingUpdate
	if rolling == nil {
		return out
	}
	switch {
	case out.Type == OnDeleteCloneSetUpdateStrategyType:
		conversiondata.SetMetadata(&meta.Annotations, PodUpdatePolicyKey, string(rolling.PodUpdatePolicy))
	case rolling.PodUpdatePolicy == v1beta1.InPlaceIfPossiblePodUpdatePolicyType:
		out.Type = InPlaceIfPossibleCloneSetUpdateStrategyType
	case rolling.PodUpdatePolicy == v1beta1.InPlaceOnlyPodUpdatePolicyType:
		out.Type = InPlaceOnlyCloneSetUpdateStrategyType
	}
	out.Partition, out.MaxUnavailable, out.MaxSurge = rolling.Partition, rolling.MaxUnavailable, rolling.MaxSurge
	out.Paused, out.PriorityStrategy, out.ScatterStrategy = rolling.Paused, rolling.PriorityStrategy, rolling.ScatterStrategy
	out.InPlaceUpdateStrategy = inPlaceFromHub(rolling.InPlaceUpdateStrategy, &meta.Annotations)
	return out
}
