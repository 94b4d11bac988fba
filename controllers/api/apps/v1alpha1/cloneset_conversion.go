package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/marks"
)

// PodUpdatePolicyKey annotates a v1alpha1 CloneSet of type OnDelete whose v1beta1 form keeps a rollingUpdate block for
// later. OpenKruise drops the block as soon as a v1alpha1 client writes the object; with this annotation it survives:
// its value is podUpdatePolicy, which has no other place here, and all else of the block stands in updateStrategy.
const PodUpdatePolicyKey = "conversion.regatta.sh/pod-update-policy"

// ConvertTo fills the hub. Two things do not get through: a type that v1alpha1 does not know becomes ReCreate (the webhook
// refuses it), and the fields imagePreDownload* are dropped, because the annotations count here (the webhook warns).
func (in *CloneSet) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.CloneSet)
	if !ok {
		return fmt.Errorf("converting to %T: a CloneSet is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	out.ObjectMeta, out.Status = src.ObjectMeta, src.Status
	out.Spec = v1beta1.CloneSetSpec{
		Replicas: src.Spec.Replicas, Selector: src.Spec.Selector, Template: src.Spec.Template,
		VolumeClaimTemplates: src.Spec.VolumeClaimTemplates, RevisionHistoryLimit: src.Spec.RevisionHistoryLimit,
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
	marks.Unset(&out.Annotations, PodUpdatePolicyKey)
	return nil
}

// ConvertFrom reads the hub. What v1alpha1 says with labels and annotations follows the fields: a mark that contradicts
// its field is what an earlier v1alpha1 client left behind.
func (in *CloneSet) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.CloneSet)
	if !ok {
		return fmt.Errorf("converting from %T: a CloneSet is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	in.ObjectMeta, in.Status = src.ObjectMeta, src.Status
	in.Spec = CloneSetSpec{
		Replicas: src.Spec.Replicas, Selector: src.Spec.Selector, Template: src.Spec.Template,
		VolumeClaimTemplates: src.Spec.VolumeClaimTemplates, RevisionHistoryLimit: src.Spec.RevisionHistoryLimit,
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
		marks.Set(&in.Labels, key, "true")
	} else if in.Labels[key] == "true" {
		marks.Unset(&in.Labels, key)
	}
	in.Spec.UpdateStrategy = strategyFromHub(&src.Spec.UpdateStrategy, &in.ObjectMeta)
	return nil
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
	marks.Unset(&meta.Annotations, PodUpdatePolicyKey)
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
		marks.Set(&meta.Annotations, PodUpdatePolicyKey, string(rolling.PodUpdatePolicy))
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
