// SPDX-License-Identifier: Apache-2.0

package gatedkinds

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// The condition and its reasons.
const (
	// Stalled is the condition that tells kstatus, and so Argo CD, Flux and others, that the object makes
	// no progress without a change.
	Stalled = kruise.ConditionStalled
	// FeatureGateOff is its reason here.
	FeatureGateOff = "FeatureGateOff"
)

// isStalled reports whether an object has the condition with this message.
func isStalled(object *unstructured.Unstructured, message string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions") // what is no list has no condition
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == Stalled && c["message"] == message {
			return true
		}
	}
	return false
}

// isFinished reports whether an object, such as a job, has ended: nothing is left to act on.
func isFinished(object *unstructured.Unstructured) bool {
	ended, _, _ := unstructured.NestedString(object.Object, "status", "completionTime") // what is no text is no time
	return ended != ""
}

// newCondition has the fields of all kinds of conditions; the API server drops those
// that one does not have.
func newCondition(object *unstructured.Unstructured, message string, now time.Time) map[string]any {
	reason := FeatureGateOff
	if object.GetKind() == "ResourceDistribution" { // its conditions have their text there
		reason = message
	}
	return map[string]any{
		"type": Stalled, "status": "True", "reason": reason, "message": message,
		"lastTransitionTime": now.UTC().Format(time.RFC3339), "observedGeneration": object.GetGeneration(),
	}
}
