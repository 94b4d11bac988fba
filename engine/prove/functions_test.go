// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/prove"
)

// findIn searches rollout/plan with a few worlds.
func findIn(t *testing.T, q prove.Question) *prove.Report {
	t.Helper()
	q.Points, q.Limits.Worlds = []decision.Name{"rollout/plan"}, 300
	report, err := prove.FindCounterexample(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Points) != 1 {
		t.Fatalf("the points are %+v", report.Points)
	}
	return report
}

func TestTextsBehindFunctions(t *testing.T) {
	r := newRig(t)
	const ns, tier = `input.workload.namespace`, `input.workload.labels.tier`
	var teams strings.Builder
	for i := range 70 {
		fmt.Fprintf(&teams, `{"team": "a", "n": %d},`, i)
	}
	for name, tc := range map[string]struct {
		old, new  string
		more      string
		want      compare.Kind
		notVaried string // is among what does not vary
	}{
		"a text in lower case":             {old: `lower(` + ns + `) == "abc"`, new: ns + ` == "abc"`, want: compare.Looser},
		"a text in upper case":             {old: `upper(` + ns + `) == "ABC"`, new: ns + ` == "ABC"`, want: compare.Looser},
		"a text without space around it":   {old: `trim_space(` + ns + `) == "abc"`, new: ns + ` == "abc"`, want: compare.Looser},
		"a text that is put together":      {old: `sprintf("%s/%s", [` + ns + `, ` + tier + `]) == "x/y"`, new: `sprintf("%s/%s", [` + ns + `, ` + tier + `]) == "x/y"`, notVaried: "sprintf of " + tier + " and " + ns},
		"a text that is joined":            {old: `concat("/", [` + ns + `, ` + tier + `]) == "x/y"`, new: `concat("/", [` + ns + `, ` + tier + `]) == "x/y"`, notVaried: "concat of " + tier + " and " + ns},
		"a text that is JSON":              {old: `json.unmarshal(` + tier + `).a == 3`, new: `json.unmarshal(` + tier + `).a == 3`, notVaried: "json.unmarshal of " + tier},
		"lower case of a text that is cut": {old: `lower(split(` + ns + `, "/")[0]) == "x"`, new: `lower(split(` + ns + `, "/")[0]) == "x"`, notVaried: "lower of input.workload.namespace and split of " + ns},
		"a function that is a condition":   {old: `glob.match("a*", [], ` + ns + `)`, new: `glob.match("a*", [], ` + ns + `)`, notVaried: "glob.match of " + ns},
		"an hour that is a number":         {old: `time.clock([input.now, "Europe/Berlin"])[0] >= 18`, new: `time.clock([input.now, "Europe/Berlin"])[0] > 18`, want: compare.Looser},
		"an hour of a date": {
			old:  `time.format([input.now, "UTC", "2006-01-02"]) == "2026-12-24"` + "\n" + `time.clock([input.now, "UTC"])[0] >= 18`,
			new:  `time.format([input.now, "UTC", "2006-01-02"]) == "2026-12-24"` + "\n" + `time.clock([input.now, "UTC"])[0] > 18`,
			want: compare.Looser,
		},
		"more constants than are remembered": {
			old: "some x in teams\nx.team == " + ns, new: "some x in teams\nx.team == " + ns,
			more: "teams := [" + teams.String() + `{"team": "b", "n": 70}]`, notVaried: "more than 64 values that " + ns + " is compared with",
		},
		"a message that is put together": {old: `input.update > 3`, new: `input.update > 3`, more: `unused := sprintf("%s", [` + ns + `])`},
	} {
		t.Run(name, func(t *testing.T) {
			report := findIn(t, r.question(prove.NeverLooser, holdIf(t, tc.old, tc.more), holdIf(t, tc.new, tc.more)))
			got := compare.Kind("")
			if report.Found != nil {
				got = report.Found.Kind
			}
			p := report.Points[0]
			if got != tc.want {
				t.Errorf("the counterexample is %q, want %q: %+v", got, tc.want, p)
			}
			if tc.notVaried != "" && (!slices.Contains(p.NotVaried, tc.notVaried) || p.Exhausted) || tc.notVaried == "" && len(p.NotVaried) > 0 {
				t.Errorf("what does not vary is %q, want %q", p.NotVaried, tc.notVaried)
			}
		})
	}
}

func TestAConditionThatFailsIsNotTrue(t *testing.T) {
	r := newRig(t)
	const unless = `to_number(input.workload.labels.n) > 5`
	q := r.question(prove.Equal, holdIf(t, "input.update > 41"), holdIf(t, "input.update > 41"))
	q.Unless = unless
	if report := findIn(t, q); report.Found != nil || report.Points[0].Unevaluated == 0 || report.Points[0].Tried == 0 {
		t.Errorf("the same bundle: %+v", report)
	}
	// The answers differ only where the condition fails.
	q = r.question(prove.Equal, holdIf(t, "input.update > 41"), holdIf(t, `input.update > 41`+"\n"+`not input.workload.labels.n == "fresh"`))
	q.Unless = unless
	report := findIn(t, q)
	if report.Found == nil || !strings.Contains(report.Found.ConditionError, "to_number") {
		t.Errorf("a difference where the condition fails: %+v", report)
	}
}

func TestTheBoundsOfASearch(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := r.question(prove.Equal, holdIf(t, many), holdIf(t, many))
	if _, err := prove.FindCounterexample(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("the error of a context that ended before is %v", err)
	}
	q.Limits.Worlds = prove.MaxWorlds + 1
	if _, err := prove.FindCounterexample(t.Context(), q); err == nil || !strings.Contains(err.Error(), "want 1 to 2000000") {
		t.Errorf("the error is %v", err)
	}
}

func TestTheNamespaceThatDecidesDoesNotVary(t *testing.T) {
	r := newRig(t)
	rules := func(ns string) (*bundle.Bundle, *bundle.Bundle) {
		return holdIf(t, "input.update > 41\ninput.workload.namespace == \""+ns+`"`), holdIf(t, "input.update > 42\ninput.workload.namespace == \""+ns+`"`)
	}
	old, now := rules("dev")
	q := r.question(prove.NeverLooser, old, now)
	q.Namespace = "shop"
	report := findIn(t, q)
	if report.Found != nil || slices.ContainsFunc(report.Points[0].Facts, func(f prove.FactReport) bool { return f.Name == "input.workload.namespace" }) {
		t.Errorf("another namespace: %+v", report)
	}
	old, now = rules("shop")
	q = r.question(prove.NeverLooser, old, now)
	q.Namespace = "shop"
	if report = findIn(t, q); report.Found == nil {
		t.Fatalf("its own namespace: %+v", report)
	}
	workload, _ := report.Found.Input.(map[string]any)["workload"].(map[string]any)
	if workload["namespace"] != "shop" {
		t.Errorf("the input is %v", report.Found.Input)
	}
}

func TestTheReportListsTheValuesOfAFact(t *testing.T) {
	r := newRig(t)
	report := findIn(t, r.question(prove.Equal, holdIf(t, "input.update > 41"), holdIf(t, "input.update > 41")))
	for _, f := range report.Points[0].Facts {
		if f.Name == "input.update" {
			if got := fmt.Sprint(f.Tried); !strings.Contains(got, "42") || len(f.Tried) > f.Values {
				t.Errorf("the values are %s of %d", got, f.Values)
			}
			return
		}
	}
	t.Errorf("the facts are %+v", report.Points[0].Facts)
}
