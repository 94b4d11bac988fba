// SPDX-License-Identifier: Apache-2.0

package notimplemented

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition and its reason.
const (
	// Stalled is the condition by which kstatus, and so Argo CD, Flux and others,
	// know that nothing will happen by itself.
	Stalled = "Stalled"
	// NotImplemented is its reason here.
	NotImplemented = "NotImplemented"
)

func stalled(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions") // what is no list has no condition
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == Stalled {
			return true
		}
	}
	return false
}

// condition has the fields of all kinds of conditions; the API server drops those
// that one does not have.
func condition(object *unstructured.Unstructured, now time.Time) map[string]any {
	message := fmt.Sprintf("Regatta stores and checks this %s, but does not act on it yet.", object.GetKind())
	reason := NotImplemented
	if object.GetKind() == "ResourceDistribution" { // its conditions have their text there
		reason = message
	}
	return map[string]any{
		"type": Stalled, "status": "True", "reason": reason, "message": message,
		"lastTransitionTime": now.UTC().Format(time.RFC3339), "observedGeneration": object.GetGeneration(),
	}
}
