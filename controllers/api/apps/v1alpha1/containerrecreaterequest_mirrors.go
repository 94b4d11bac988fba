// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// snapshotMirror is the annotation that status.containerStatusSnapshot is here.
func snapshotMirror() conversiondata.Mirror[[]v1beta1.ContainerStatusSnapshot] {
	return conversiondata.Mirror[[]v1beta1.ContainerStatusSnapshot]{
		Key: v1beta1.ContainerRecreateRequestSyncStatusesKey,
		Parse: func(text string) (snapshot []v1beta1.ContainerStatusSnapshot, ok bool) {
			if err := json.Unmarshal([]byte(text), &snapshot); err != nil || len(snapshot) == 0 {
				return nil, err == nil
			}
			return snapshot, true
		},
		Format: func(snapshot []v1beta1.ContainerStatusSnapshot) string {
			text, _ := json.Marshal(snapshot) // strings, numbers and booleans
			return string(text)
		},
	}
}

// acquiredMirror is the annotation that the time of the condition PreRecreateGrace is here, in whole seconds.
func acquiredMirror() conversiondata.Mirror[*metav1.Time] {
	return conversiondata.Mirror[*metav1.Time]{
		Key: v1beta1.ContainerRecreateRequestUnreadyAcquiredKey,
		Parse: func(text string) (*metav1.Time, bool) {
			read, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return nil, false
			}
			// UTC moves the last hours of 9999 into the year 10000, which time.Parse rejects.
			utc, err := time.Parse(time.RFC3339, read.UTC().Format(time.RFC3339))
			return &metav1.Time{Time: utc}, err == nil
		},
		Format: func(at *metav1.Time) string { return at.UTC().Format(time.RFC3339) },
	}
}

// graceCondition is the condition PreRecreateGrace as the controller writes it.
func graceCondition(at metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: v1beta1.ContainerRecreateRequestPreRecreateGrace, Status: metav1.ConditionTrue, LastTransitionTime: at,
		Reason:  v1beta1.ContainerRecreateRequestPreRecreateGraceReason,
		Message: v1beta1.ContainerRecreateRequestPreRecreateGraceMessage,
	}
}

func isGrace(condition metav1.Condition) bool {
	return condition.Type == v1beta1.ContainerRecreateRequestPreRecreateGrace
}

func isAcquired(condition metav1.Condition) bool {
	return isGrace(condition) && condition.Status == metav1.ConditionTrue
}

// withoutGrace says when the pod was held not ready, and what the annotation does not say of the conditions.
func withoutGrace(conditions []metav1.Condition) (*metav1.Time, []metav1.Condition) {
	i := slices.IndexFunc(conditions, isAcquired)
	if i < 0 {
		return nil, conditions
	}
	at := conditions[i].LastTransitionTime
	whole := at.Rfc3339Copy() // as JSON has it
	rest := conditions[1:]
	if i == 0 && conditions[0] == graceCondition(at) && !slices.ContainsFunc(rest, isGrace) {
		return &whole, rest
	}
	return &whole, conditions
}

// withGrace makes the condition say what the annotation says.
func withGrace(kept []metav1.Condition, acquired *metav1.Time) []metav1.Condition {
	i := slices.IndexFunc(kept, isAcquired)
	switch {
	case acquired == nil:
		if kept = slices.DeleteFunc(kept, isAcquired); len(kept) == 0 {
			return nil // or an empty status would be written
		}
		return kept
	case i >= 0:
		kept[i].LastTransitionTime = *acquired
		return kept
	}
	return slices.Insert(slices.DeleteFunc(kept, isGrace), 0, graceCondition(*acquired))
}
