// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

const (
	// unknownReason stands in v1beta1 for a reason that is missing or refused.
	unknownReason = "Unknown"
	// maxConditionMessage is how many bytes of a message v1beta1 takes.
	maxConditionMessage = 32 * 1024
)

// conditionsToHub gives what v1beta1 takes: one condition of each type, with all fields. A zero time becomes that of the
// epoch.
func conditionsToHub(in []WorkloadSpreadSubsetCondition) []metav1.Condition {
	var out []metav1.Condition
	seen := map[string]bool{}
	for i := range in {
		if condition, ok := conditionToHub(&in[i]); ok && !seen[condition.Type] {
			seen[condition.Type] = true
			out = append(out, condition)
		}
	}
	return out
}

func conditionToHub(in *WorkloadSpreadSubsetCondition) (metav1.Condition, bool) {
	out := metav1.Condition{
		Type: string(in.Type), Status: metav1.ConditionStatus(in.Status),
		LastTransitionTime: in.LastTransitionTime, Reason: in.Reason, Message: in.Message,
	}
	for _, refused := range metav1validation.ValidateCondition(out, nil) {
		switch refused.Field {
		case "type":
			return out, false
		case "status":
			out.Status = metav1.ConditionUnknown
		case "lastTransitionTime":
			out.LastTransitionTime = metav1.Unix(0, 0)
		case "reason":
			out.Reason = unknownReason
		case "message":
			out.Message = strings.ToValidUTF8(out.Message[:maxConditionMessage], "")
		}
	}
	return out, true
}

func conditionsFromHub(in []metav1.Condition) []WorkloadSpreadSubsetCondition {
	return convertEach(in, func(c *metav1.Condition) WorkloadSpreadSubsetCondition {
		out := WorkloadSpreadSubsetCondition{
			Type: WorkloadSpreadSubsetConditionType(c.Type), Status: corev1.ConditionStatus(c.Status),
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		}
		if out.Reason == unknownReason {
			out.Reason = ""
		}
		if out.LastTransitionTime.Unix() == 0 {
			out.LastTransitionTime = metav1.Time{}
		}
		return out
	})
}

// translation turns lists of conditions into those of the other version, and keeps the lists that would not come back as
// they were.
type translation[From, To any] struct {
	there func([]From) []To
	back  func([]To) []From
	lost  keptLists[From]
	kept  keptLists[To]
}

// keptLists are lists by where they stand: the index of the subset, and its version behind a slash.
type keptLists[Item any] struct {
	Conditions map[string][]Item `json:"conditions,omitempty"`
}

func newTranslation[From, To any](there func([]From) []To, back func([]To) []From) *translation[From, To] {
	return &translation[From, To]{there: there, back: back, lost: keptLists[From]{Conditions: map[string][]From{}}}
}

// restoreLists reads the lists that a translation the other way has kept.
func (t *translation[From, To]) restoreLists(annotations *map[string]string, key string) {
	conversiondata.RestoreFields(annotations, key, &t.kept)
}

func (t *translation[From, To]) storeLists(annotations *map[string]string, key string) error {
	return conversiondata.StoreFields(annotations, key, t.lost)
}

// translateList prefers the list that was kept as long as it still means the same.
func (t *translation[From, To]) translateList(in []From, at string) []To {
	if kept, ok := t.kept.Conditions[at]; ok && equality.Semantic.DeepEqual(t.back(kept), in) {
		return kept
	}
	out := t.there(in)
	if !equality.Semantic.DeepEqual(t.back(out), in) {
		t.lost.Conditions[at] = in
	}
	return out
}
