// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/rules"
)

type recorded []string

func (r *recorded) RecordNormal(reason, message string) {
	*r = append(*r, fmt.Sprint("Normal ", reason, " ", message))
}
func (r *recorded) RecordWarning(reason, message string) {
	*r = append(*r, fmt.Sprint("Warning ", reason, " ", message))
}

func TestAnEventOfAHoldWarnsUnlessTheUserAskedForIt(t *testing.T) {
	e := rules.Engine(t, "")
	for name, tc := range map[string]struct {
		strategy points.Strategy
		first    []decision.Hold // ahead of those of the strategy
		want     string
	}{
		"a paused rollout is normal":                 {points.Strategy{Type: "RollingUpdate", Paused: true}, nil, "Normal UpdateHeld RolloutPaused: "},
		"OnDelete is normal":                         {points.Strategy{Type: "OnDelete"}, nil, "Normal UpdateHeld OnDelete: "},
		"a strategy that no rule knows is a warning": {points.Strategy{Type: "Other"}, nil, "Warning UpdateHeld UnknownStrategy: "},
		"a policy that holds is a warning, paused or not": {
			points.Strategy{Type: "RollingUpdate", Paused: true},
			[]decision.Hold{{Rule: "demo", Reason: "Frozen", Message: "Frozen."}}, "Warning UpdateHeld Frozen: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, _ := engine.Decide(t.Context(), e, points.PlanPoint(), decision.Subject{Kind: "CloneSet", Name: "web"}, points.PlanInput{Update: 3, Strategy: tc.strategy})
			res := rollout.Result{Decisions: rollout.Decisions{Looked: true, Holds: append(tc.first, plan.Holds...)}}
			events, status := &recorded{}, &kruise.CloneSetStatus{}
			reportHold(events, &rollout.Facts{}, res, status)
			if len(*events) != 1 || !strings.HasPrefix((*events)[0], tc.want) {
				t.Fatalf("%q, want %q", *events, tc.want)
			}
			reportHold(events, &rollout.Facts{}, res, status) // the same again is no news
			if len(*events) != 1 {
				t.Error(*events)
			}
		})
	}
}
