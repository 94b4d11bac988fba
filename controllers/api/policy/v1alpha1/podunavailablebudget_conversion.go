// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
	"github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
)

// budgetKept is what only the hub has fields for.
type budgetKept struct {
	IgnoredPodSelector *metav1.LabelSelector `json:"ignoredPodSelector,omitempty"`
	// ProtectOperations that the annotation cannot say.
	ProtectOperations []v1beta1.PubOperation   `json:"protectOperations,omitempty"`
	Originals         conversiondata.Originals `json:"annotations,omitempty"`
}

// budgetSpelled is what only this version says so.
type budgetSpelled struct {
	Spellings conversiondata.Spellings `json:"annotations,omitempty"`
}

// ConvertTo fills the hub. An annotation that cannot be read stays an annotation, for the webhook to refuse.
func (in *PodUnavailableBudget) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.PodUnavailableBudget)
	if !ok {
		return fmt.Errorf("converting to %T: a PodUnavailableBudget is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	out.ObjectMeta, out.Status = src.ObjectMeta, src.Status
	var kept budgetKept
	conversiondata.RestoreFields(&out.Annotations, conversiondata.NewerKey, &kept)
	var spelled budgetSpelled
	operations, said := operationsMirror().ToField(&out.Annotations, kept.Originals, &spelled.Spellings)
	if !said {
		operations = kept.ProtectOperations
	}
	total, _ := totalReplicasMirror().ToField(&out.Annotations, kept.Originals, &spelled.Spellings)
	out.Spec = v1beta1.PodUnavailableBudgetSpec{
		Selector: src.Spec.Selector, TargetReference: src.Spec.TargetReference,
		MaxUnavailable: src.Spec.MaxUnavailable, MinAvailable: src.Spec.MinAvailable,
		ProtectOperations: operations, ProtectTotalReplicas: total, IgnoredPodSelector: kept.IgnoredPodSelector,
	}
	return conversiondata.StoreFields(&out.Annotations, conversiondata.OlderKey, spelled)
}

// ConvertFrom reads the hub.
func (in *PodUnavailableBudget) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.PodUnavailableBudget)
	if !ok {
		return fmt.Errorf("converting from %T: a PodUnavailableBudget is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	in.ObjectMeta, in.Status = src.ObjectMeta, src.Status
	in.Spec = PodUnavailableBudgetSpec{
		Selector: src.Spec.Selector, TargetReference: src.Spec.TargetReference,
		MaxUnavailable: src.Spec.MaxUnavailable, MinAvailable: src.Spec.MinAvailable,
	}
	var spelled budgetSpelled
	conversiondata.RestoreFields(&in.Annotations, conversiondata.OlderKey, &spelled)
	kept := budgetKept{IgnoredPodSelector: src.Spec.IgnoredPodSelector}
	operations := src.Spec.ProtectOperations
	if !operationsMirror().FromField(operations, &in.Annotations, spelled.Spellings, &kept.Originals) {
		kept.ProtectOperations = operations
	}
	totalReplicasMirror().FromField(src.Spec.ProtectTotalReplicas, &in.Annotations, spelled.Spellings, &kept.Originals)
	return conversiondata.StoreFields(&in.Annotations, conversiondata.NewerKey, kept)
}

// operationsMirror is the annotation that spec.protectOperations is here: a list with commas.
func operationsMirror() conversiondata.Mirror[[]v1beta1.PubOperation] {
	return conversiondata.Mirror[[]v1beta1.PubOperation]{
		Key: BudgetProtectOperationsKey,
		Parse: func(text string) ([]v1beta1.PubOperation, bool) {
			var operations []v1beta1.PubOperation
			for word := range strings.SplitSeq(text, ",") {
				operation := v1beta1.PubOperation(strings.TrimSpace(word))
				switch operation {
				case v1beta1.PubDeleteOperation, v1beta1.PubUpdateOperation, v1beta1.PubEvictOperation, v1beta1.PubResizeOperation:
					operations = append(operations, operation)
				default:
					return nil, false
				}
			}
			return operations, true
		},
		Format: func(operations []v1beta1.PubOperation) string {
			words := make([]string, 0, len(operations))
			for _, operation := range operations {
				words = append(words, string(operation))
			}
			return strings.Join(words, ",")
		},
	}
}

// totalReplicasMirror is the annotation that spec.protectTotalReplicas is here.
func totalReplicasMirror() conversiondata.Mirror[*int32] {
	return conversiondata.Mirror[*int32]{
		Key: BudgetProtectTotalReplicasKey,
		Parse: func(text string) (*int32, bool) {
			number, err := strconv.ParseInt(text, 10, 32)
			return ptr.To(int32(number)), err == nil
		},
		Format: func(total *int32) string { return strconv.FormatInt(int64(*total), 10) },
	}
}
