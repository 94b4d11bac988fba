// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Whatever a rule says is counted where a round keeps it.
func TestWhatARoundKeepsIsCounted(t *testing.T) {
	const long = 8000
	text := strings.Repeat("x", long)
	hold := decision.Hold{Reason: "Held", Message: text}
	f := &Facts{}
	empty := newRound(nil, f, Result{}, nil).CountBytes()
	for name, kept := range map[string]struct {
		res     Result
		journal []decision.Record
		pods    int
		more    int
	}{
		"holds of the plan":    {res: Result{Decisions: Decisions{Holds: []decision.Hold{hold}}}, more: long},
		"pods that are held":   {res: Result{Decisions: Decisions{Skipped: []selection.Skip{{Hold: hold}, {Pod: types.NamespacedName{Name: "a"}, Hold: hold}}}}, more: 2 * long},
		"pods that were kept":  {res: Result{Outcome: Outcome{Kept: []selection.Skip{{Hold: hold}}}}, more: long},
		"holds of the scaling": {res: Result{ScaleHolds: []decision.Hold{hold}}, more: long},
		"the plan":             {res: Result{Decisions: Decisions{Plan: &decision.Record{Output: points.PlanOutput{Holds: []decision.Hold{hold}}}}}, more: long},
		"what is stuck":        {res: Result{Stuck: []Stuck{{Message: text}}}, more: long},
		"an error":             {res: Result{Err: errors.New(text)}, more: long},
		"rules":                {journal: []decision.Record{{Rules: []string{text}}}, more: long},
		"pods":                 {pods: 100, more: 100 * podBytes},
	} {
		f := &Facts{Pods: make([]*facts.Pod, kept.pods)}
		if got := newRound(nil, f, kept.res, kept.journal).CountBytes(); got < empty+kept.more {
			t.Errorf("%s of %d bytes are counted as %d", name, kept.more, got-empty)
		}
	}
}
