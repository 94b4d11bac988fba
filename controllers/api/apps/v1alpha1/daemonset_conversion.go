// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// olderDaemonSet is what a v1alpha1 client wrote where v1beta1 has no Surging.
type olderDaemonSet struct {
	RollingUpdateType v1beta1.RollingUpdateType `json:"rollingUpdateType,omitempty"`
	MaxUnavailable    *intstr.IntOrString       `json:"maxUnavailable,omitempty"`
	MaxSurge          *intstr.IntOrString       `json:"maxSurge,omitempty"`
	Spellings         conversiondata.Spellings  `json:"annotations,omitempty"`
}

// newerDaemonSet is Surging if that stands in the hub itself, where it is an unknown word: it is not to be translated
// on its way back.
type newerDaemonSet struct {
	RollingUpdateType v1beta1.RollingUpdateType `json:"rollingUpdateType,omitempty"`
	Originals         conversiondata.Originals  `json:"annotations,omitempty"`
}

// progressiveMirror is the annotation that scaleStrategy.partitionedScaling is here.
func progressiveMirror() conversiondata.Mirror[bool] {
	return conversiondata.Mirror[bool]{
		Key:    v1beta1.ProgressiveCreatePodKey,
		Parse:  func(text string) (bool, bool) { return text == "true", text == "true" },
		Format: strconv.FormatBool,
	}
}

// ConvertTo fills the hub. The annotation of the progressive creation becomes a field, and is gone from the hub.
func (in *DaemonSet) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.DaemonSet)
	if !ok {
		return fmt.Errorf("converting to %T: a DaemonSet is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	out.ObjectMeta = src.ObjectMeta
	out.Spec = v1beta1.DaemonSetSpec{
		Selector: src.Spec.Selector, Template: src.Spec.Template, UpdateStrategy: src.Spec.UpdateStrategy,
		MinReadySeconds: src.Spec.MinReadySeconds, BurstReplicas: src.Spec.BurstReplicas,
		RevisionHistoryLimit: src.Spec.RevisionHistoryLimit, Lifecycle: src.Spec.Lifecycle,
	}
	out.Status = v1beta1.DaemonSetStatus{
		ObservedGeneration: src.Status.ObservedGeneration, DesiredNumberScheduled: src.Status.DesiredNumberScheduled,
		CurrentNumberScheduled: src.Status.CurrentNumberScheduled, NumberMisscheduled: src.Status.NumberMisscheduled,
		NumberReady: src.Status.NumberReady, UpdatedNumberScheduled: src.Status.UpdatedNumberScheduled,
		NumberAvailable: src.Status.NumberAvailable, NumberUnavailable: src.Status.NumberUnavailable,
		CurrentRevision: src.Status.CurrentRevision, UpdateRevision: src.Status.DaemonSetHash, CollisionCount: src.Status.CollisionCount,
		Conditions: src.Status.Conditions,
	}

	var newer newerDaemonSet
	conversiondata.RestoreFields(&out.Annotations, conversiondata.NewerKey, &newer)
	var older olderDaemonSet
	rolling := out.Spec.UpdateStrategy.RollingUpdate
	if rolling != nil && rolling.Type == SurgingRollingUpdateType && newer.RollingUpdateType != SurgingRollingUpdateType {
		older = olderDaemonSet{RollingUpdateType: rolling.Type, MaxUnavailable: rolling.MaxUnavailable, MaxSurge: rolling.MaxSurge}
		*rolling = older.convertSurgingType(*rolling)
	}
	out.Spec.ScaleStrategy.PartitionedScaling, _ = progressiveMirror().ToField(&out.Annotations, newer.Originals, &older.Spellings)
	return conversiondata.StoreFields(&out.Annotations, conversiondata.OlderKey, older)
}

// ConvertFrom reads the hub.
func (in *DaemonSet) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.DaemonSet)
	if !ok {
		return fmt.Errorf("converting from %T: a DaemonSet is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	in.ObjectMeta = src.ObjectMeta
	in.Spec = DaemonSetSpec{
		Selector: src.Spec.Selector, Template: src.Spec.Template, UpdateStrategy: src.Spec.UpdateStrategy,
		MinReadySeconds: src.Spec.MinReadySeconds, BurstReplicas: src.Spec.BurstReplicas,
		RevisionHistoryLimit: src.Spec.RevisionHistoryLimit, Lifecycle: src.Spec.Lifecycle,
	}
	in.Status = DaemonSetStatus{
		ObservedGeneration: src.Status.ObservedGeneration, DesiredNumberScheduled: src.Status.DesiredNumberScheduled,
		CurrentNumberScheduled: src.Status.CurrentNumberScheduled, NumberMisscheduled: src.Status.NumberMisscheduled,
		NumberReady: src.Status.NumberReady, UpdatedNumberScheduled: src.Status.UpdatedNumberScheduled,
		NumberAvailable: src.Status.NumberAvailable, NumberUnavailable: src.Status.NumberUnavailable,
		CurrentRevision: src.Status.CurrentRevision, DaemonSetHash: src.Status.UpdateRevision, CollisionCount: src.Status.CollisionCount,
		Conditions: src.Status.Conditions,
	}

	var older olderDaemonSet
	conversiondata.RestoreFields(&in.Annotations, conversiondata.OlderKey, &older)
	kept := older.RollingUpdateType == SurgingRollingUpdateType
	var newer newerDaemonSet
	progressiveMirror().FromField(src.Spec.ScaleStrategy.PartitionedScaling, &in.Annotations, older.Spellings, &newer.Originals)
	rolling := in.Spec.UpdateStrategy.RollingUpdate
	switch {
	case rolling == nil:
	case rolling.Type == SurgingRollingUpdateType:
		newer.RollingUpdateType = rolling.Type
	case kept && equality.Semantic.DeepEqual(*rolling, older.convertSurgingType(*rolling)):
		rolling.Type, rolling.MaxUnavailable, rolling.MaxSurge = older.RollingUpdateType, older.MaxUnavailable, older.MaxSurge
	}
	return conversiondata.StoreFields(&in.Annotations, conversiondata.NewerKey, newer)
}

// convertSurgingType says Surging in the words of v1beta1. It never replaced a pod before the new one was there, whatever
// maxUnavailable said.
func (o *olderDaemonSet) convertSurgingType(rolling v1beta1.RollingUpdateDaemonSet) v1beta1.RollingUpdateDaemonSet {
	rolling.Type = v1beta1.StandardRollingUpdateType
	none := intstr.FromInt32(0)
	rolling.MaxUnavailable = &none
	rolling.MaxSurge = ptr.To(intstr.FromInt32(1))
	if surge := ptr.Deref(o.MaxSurge, none); surge != none && surge != intstr.FromString("0%") {
		rolling.MaxSurge = &surge
	}
	return rolling
}
