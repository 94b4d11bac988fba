// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/regatta-sh/regatta/engine/decision"
)

// A missing fact of one pod is a missing fact of each question about pods, until the caller holds the pod itself.
func TestMissingFactsOfPodsAreThoseOfTheQuestion(t *testing.T) {
	unknown := PodFacts{Name: "web-1", MissingFacts: []decision.MissingFact{{Fact: "pods[].onNode", Reason: "NodeUnknown", Message: "M."}}}
	known := PodFacts{Name: "web-0"}
	for name, in := range map[string]any{
		"rank":            RankInput{Pods: []PodFacts{known, unknown}},
		"rows":            RowsInput{Rows: []PodFacts{known, unknown}},
		"scale":           ScaleInput{Pods: []VictimFacts{{PodFacts: known}, {PodFacts: unknown}}},
		"scale, prepared": ScaleInput{Preparing: []PreparingFacts{{PodFacts: unknown}}},
	} {
		if missing, ok := decision.FindMissingFact(in); !ok || missing.Reason != "NodeUnknown" {
			t.Errorf("%s: the missing fact is %+v", name, missing)
		}
	}
	for name, in := range map[string]any{
		"rank":              RankInput{Pods: []PodFacts{known, HidePodMissingFacts(unknown)}},
		"rows":              RowsInput{Rows: []PodFacts{known}},
		"scale":             ScaleInput{Pods: []VictimFacts{{PodFacts: known}}},
		"rank without pods": RankInput{},
	} {
		if missing, ok := decision.FindMissingFact(in); ok {
			t.Errorf("%s: %+v is missing", name, missing)
		}
	}
	if len(unknown.MissingFacts) != 1 {
		t.Error("hiding the missing facts changed the pod")
	}
}
