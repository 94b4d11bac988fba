// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
)

// TestARuleThatNeedsFactsOfTwoPointsIsRefused has the built-in policies in front.
func TestARuleThatNeedsFactsOfTwoPointsIsRefused(t *testing.T) {
	b, err := bundle.ReadBuiltin(os.DirFS("../../../policies"))
	if err != nil {
		t.Fatal(err)
	}
	const head = "package extend.rollout.a\n\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if "
	for name, tc := range map[string]struct {
		source string
		want   string // "" where the rule can be true
	}{
		"facts of one point":                     {head + "{\n\tinput.update > 1\n\tinput.maxUnavailable > 1\n}", ""},
		"facts of two points":                    {head + "{\n\tinput.maxUnavailable > 1\n\tinput.qosChanged\n}", "a.rego:5:2: hold can never be true: it needs input.maxUnavailable, which rollout/plan"},
		"the other one under not":                {head + "{\n\tinput.maxUnavailable > 1\n\tnot input.qosChanged\n}", ""},
		"the other one in object.get":            {head + "{\n\tinput.maxUnavailable > 1\n\tobject.get(input, \"changes\", {}) == {}\n}", ""},
		"the other one in a comprehension":       {head + "{\n\tinput.maxUnavailable > 1\n\tcount([c | some c in input.changes]) == 0\n}", ""},
		"the other one in a helper":              {head + "{\n\tinput.maxUnavailable > 1\n\tchanged\n}\n\nchanged if input.qosChanged", "a.rego:5:2: hold can never be true: it needs input.maxUnavailable, which rollout/plan"},
		"the other one in one of two helpers":    {head + "{\n\tinput.maxUnavailable > 1\n\tchanged\n}\n\nchanged if input.qosChanged\n\nchanged if input.update > 1", ""},
		"the other one in the else of a helper":  {head + "{\n\tinput.maxUnavailable > 1\n\tchanged\n}\n\nchanged if {\n\tinput.qosChanged\n} else if {\n\tinput.update > 1\n}", ""},
		"a helper that has a default":            {head + "{\n\tinput.maxUnavailable > 1\n\tnot changed\n}\n\ndefault changed := false\n\nchanged if input.qosChanged", ""},
		"a function that needs the other one":    {head + "{\n\tinput.maxUnavailable > 1\n\tmore(1)\n}\n\nmore(n) if {\n\tn > 0\n\tinput.qosChanged\n}", "hold can never be true"},
		"a helper that can never be true itself": {head + "never\n\nnever if {\n\tinput.maxUnavailable > 1\n\tinput.qosChanged\n}", "a.rego:3:"},
		"a second clause that can never be true": {head + "input.update > 1\n\nhold contains {\"reason\": \"S\", \"message\": \"m\"} if {\n\tinput.maxUnavailable > 1\n\tinput.qosChanged\n}", "hold can never be true"},
		"the other one in the message":           {"package extend.rollout.a\n\nhold contains {\"reason\": \"R\", \"message\": sprintf(\"%v\", [input.qosChanged])} if input.maxUnavailable > 1", "hold can never be true"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gate.New(b).AdmitBundle(t.Context(), user(t, "own", map[string]string{"a.rego": tc.source}), nil, nil)
			var refused *gate.RefusedError
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (!errors.As(err, &refused) || refused.Stage != gate.Schemas || !strings.Contains(refused.Problems.Error(), tc.want) || !strings.Contains(refused.Problems.Error(), "rollout/change")):
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
