// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/prove"
)

// holdIf is a bundle that holds rollouts where a body is true.
func holdIf(t *testing.T, body string, more ...string) *bundle.Bundle {
	t.Helper()
	text := `package extend.rollout.x

import future.keywords.not

# METADATA
# labels:
#   id: x.hold
hold contains {"rule": "x.hold", "reason": "Held", "message": "It is held."} if {
` + body + "\n}\n" + strings.Join(more, "\n")
	b, err := bundle.FromFiles("x", map[string]string{"x.rego": text})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFindCounterexample(t *testing.T) {
	r := newRig(t)
	for name, tc := range map[string]struct {
		mode     prove.Mode
		old, new string
		unless   string
		worlds   int
		want     compare.Kind // empty if there is no counterexample
		// complete and notVaried are about the report.
		complete  bool
		notVaried string
	}{
		"a higher bound is looser":                 {old: "input.update > 41", new: "input.update > 42", want: compare.Looser},
		"a lower bound is not":                     {old: "input.update > 42", new: "input.update > 41", complete: true},
		"a lower bound is another answer":          {mode: prove.Equal, old: "input.update > 42", new: "input.update > 41", want: compare.Stricter},
		"at a bound and above it":                  {old: "input.update >= 42", new: "input.update > 42", want: compare.Looser},
		"the same conditions in another order":     {mode: prove.Equal, old: "input.update > 3\ninput.restart", new: "input.restart\ninput.update > 3", complete: true},
		"undefined is not false":                   {old: `not input.workload.labels.tier == "dev"`, new: `input.workload.labels.tier != "dev"`, want: compare.Looser},
		"a text that YAML reads as something else": {old: `input.workload.labels.n == "on"`, new: `input.workload.labels.n == "007"`, want: compare.Looser},
		"a function of a fact that is missing":     {old: `not is_dev(input.workload.labels.tier)`, new: `tier := input.workload.labels.tier` + "\n" + `not is_dev(tier)`, want: compare.Looser},
		"an annotation by object.get":              {old: `object.get(input.workload, ["annotations", "a/b"], "yes") == "yes"`, new: `input.workload.annotations["a/b"] == "yes"`, want: compare.Looser},
		"a key that is a constant of a rule":       {old: `input.workload.labels[key] == "on"`, new: `input.workload.labels[key] == "off"`, want: compare.Looser},
		"a prefix":                                 {old: `startswith(input.workload.namespace, "shop-")`, new: `input.workload.namespace == "shop-"`, want: compare.Looser},
		"a pattern":                                {old: "regex.match(`^[0-9]{3}$`, input.workload.labels.n)", new: "input.workload.labels.n == \"000\"\nfalse", want: compare.Looser},
		"a difference of two facts":                {old: "input.counts.total - input.counts.updated > 3", new: "input.counts.total - input.counts.updated > 4", want: compare.Looser},
		"a group of a topology":                    {old: "some _, g in input.groups.zone\ng.unavailable > 2", new: "some _, g in input.groups.zone\ng.unavailable > 3", want: compare.Looser},
		"all groups and some group":                {old: "some _, g in input.groups.zone\ng.unavailable > 2", new: "every _, g in input.groups.zone {\ng.unavailable > 2\n}\ncount(input.groups.zone) > 0", want: compare.Looser},
		"a weekday":                                {old: `time.weekday([input.now, "Europe/Berlin"]) in {"Friday", "Sunday"}`, new: `time.weekday([input.now, "Europe/Berlin"]) == "Sunday"`, want: compare.Looser},
		"a time of the day":                        {old: `time.format([input.now, "Europe/Berlin", "15:04"]) >= "18:30"`, new: `time.format([input.now, "Europe/Berlin", "15:04"]) > "18:30"`, want: compare.Looser},
		"the end of hours among dates":             {old: calendar + `clock >= "17:00"`, new: calendar + `clock > "17:00"`, want: compare.Looser},
		"more values than are tried": {
			old: "input.update in numbers\ninput.restart", new: "input.update in numbers\ninput.restart", notVaried: "more values of input.update",
		},
		"a decision that is not made":                  {old: "input.update > 3", new: "input.update > 3\nto_number(input.workload.annotations.n) > 5", want: compare.Looser},
		"an error where there was a decision":          {old: "input.update > 3", new: "input.update > to_number(input.workload.annotations.n)", want: compare.Looser},
		"a number that is none":                        {mode: prove.NeverFails, new: `to_number(input.workload.annotations.n) > 5`, want: compare.Lost},
		"a number that is checked":                     {mode: prove.NeverFails, new: "regex.match(`^[0-9]+$`, input.workload.annotations.n)\nto_number(input.workload.annotations.n) > 5", complete: true},
		"division by zero":                             {mode: prove.NeverFails, new: "input.counts.updated / input.counts.total > 0.5", want: compare.Lost},
		"another answer where it may differ":           {mode: prove.Equal, old: "input.update > 3", new: "input.update > 3\n" + `input.workload.namespace != "dev"`, unless: `input.workload.namespace == "dev"`, complete: true},
		"another answer where it may not":              {mode: prove.Equal, old: "input.update > 3", new: "input.update > 3\n" + `input.workload.namespace != "prod"`, unless: `input.workload.namespace == "dev"`, want: compare.Looser},
		"more worlds than may be tried":                {mode: prove.Equal, old: many, new: many, worlds: 50},
		"a rule with many conditions, of which one is": {old: many, new: many + "\ninput.counts.total > 9", worlds: 3000, want: compare.Looser},
		"a map that a function reads as a whole":       {old: `"tier" in object.keys(input.workload.labels)`, new: `"team" in object.keys(input.workload.labels)`, notVaried: "input.workload.labels"},
		"a fact that cannot vary":                      {old: "some k\ninput[k] == 7\ninput.update > 3", new: "some k\ninput[k] == 7\ninput.update > 3", notVaried: "input[...], with a computed key"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.mode == "" {
				tc.mode = prove.NeverLooser
			}
			helpers := []string{`is_dev(tier) if tier == "dev"`, `key := "a/switch"`, `numbers := {10, 20, 30, 40, 50, 60, 70, 80, 90}`}
			var used []string
			for _, h := range helpers {
				name, _, _ := strings.Cut(strings.ReplaceAll(h, "(", " "), " ")
				if strings.Contains(tc.old+tc.new, name+"(") || strings.Contains(tc.old+tc.new, "["+name+"]") || strings.Contains(tc.old, " in "+name) {
					used = append(used, h)
				}
			}
			var old *bundle.Bundle
			if tc.old != "" {
				old = holdIf(t, tc.old, used...)
			}
			q := r.question(tc.mode, old, holdIf(t, tc.new, used...))
			q.Points, q.Unless = []decision.Name{"rollout/plan"}, tc.unless
			if tc.worlds > 0 {
				q.Limits.Worlds = tc.worlds
			}
			report, err := prove.FindCounterexample(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			got := compare.Kind("")
			if report.Found != nil {
				got = report.Found.Kind
				text, err := report.Found.WriteCase()
				if err == nil {
					err = prove.CheckCase(t.Context(), q, text)
				}
				if err != nil {
					t.Errorf("%v\n%s", err, text)
				}
			}
			p := report.Points[0]
			if got != tc.want || p.Exhausted != tc.complete || strings.Join(p.NotVaried, ", ") != tc.notVaried {
				t.Errorf("the counterexample is %q, want %q: %+v", got, tc.want, p)
			}
			if tc.worlds > 0 && p.Tried > tc.worlds {
				t.Errorf("%d worlds were tried of %d", p.Tried, tc.worlds)
			}
		})
	}
}

// calendar has hours, dates and time zones.
const calendar = `clock := time.format([input.now, "Europe/Berlin", "15:04"])
clock >= "09:00"
clock != "12:00"
clock != "13:30"
not time.format([input.now, "UTC", "2006-01-02"]) in {"2026-12-24", "2026-12-25", "2026-12-31", "2027-01-01"}
not time.weekday([input.now, "Europe/Berlin"]) in {"Saturday", "Sunday"}
`

// many are conditions that only one value each makes true.
const many = `input.workload.kind == "CloneSet"
input.workload.labels.tier == "gold"
input.workload.annotations["a/b"] == "on"
input.strategy.type == "RollingUpdate"
input.strategy.partition == 7
input.counts.updated == 5
input.counts.unavailable == 4
input.maxUnavailable == 3
not input.restart`

func TestShrink(t *testing.T) {
	r := newRig(t)
	q := r.question(prove.NeverLooser, holdIf(t, many), holdIf(t, many+"\ninput.counts.total > 9"))
	q.Points = []decision.Name{"rollout/plan"}
	report, err := prove.FindCounterexample(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	c := report.Found
	if c == nil {
		t.Fatalf("there is no counterexample: %+v", report)
	}
	input, ok := c.Input.(map[string]any)
	if !ok {
		t.Fatalf("the input is %v", c.Input)
	}
	for _, needless := range []string{"now", "revisions", "update", "groups"} {
		if _, there := input[needless]; there {
			t.Errorf("%s is not needed and still there: %v", needless, input)
		}
	}
	if len(c.Lost) != 1 || c.Lost[0].Rule != "x.hold" || c.Lost[0].Reason != "Held" || c.Lost[0].Place != "x.rego:8:1" {
		t.Errorf("what is lost is %+v", c.Lost)
	}
	if c.Old.Verdict.Word != string(rollout.Held) || c.New.Verdict.Word != string(rollout.Go) {
		t.Errorf("the answers are %s and %s", c.Old.Verdict.Word, c.New.Verdict.Word)
	}
}

// TestRecordedInputs varies a recorded input where there is no case.
func TestRecordedInputs(t *testing.T) {
	r := newRig(t)
	q := r.question(prove.NeverLooser, holdIf(t, `endswith(input.workload.uid, "7")`+"\ninput.update > 3"), holdIf(t, `endswith(input.workload.uid, "77")`+"\ninput.update > 3"))
	q.Points = []decision.Name{"rollout/plan"}
	q.Cases = nil
	in := rollout.PlanInput{Update: 1, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}, Workload: rollout.Workload{Name: "recorded"}}
	q.Records = []decision.Record{{Point: "rollout/plan", Input: in}}
	report, err := prove.FindCounterexample(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if report.Found == nil || report.Points[0].Bases != 1 {
		t.Fatalf("there is no counterexample: %+v", report)
	}
}

// A recorded input in which a fact is missing would be a counterexample to any policy that takes part in the point.
func TestARecordedInputWithAMissingFactIsNoCounterexample(t *testing.T) {
	r := newRig(t)
	q := r.question(prove.NeverFails, nil, holdIf(t, "input.update > 3"))
	q.Points, q.Cases = []decision.Name{"rollout/plan"}, nil
	in := rollout.PlanInput{Update: 1, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}, Workload: rollout.Workload{Name: "recorded"}}
	in.Workload.MissingFacts = []decision.MissingFact{{Fact: "workload.namespaceLabels", Reason: "NamespaceUnknown", Message: "m"}}
	q.Records = []decision.Record{{Point: "rollout/plan", Input: in}}
	report, err := prove.FindCounterexample(t.Context(), q)
	if err != nil || report.Found != nil {
		t.Errorf("the counterexample is %+v, %v", report.Found, err)
	}
}

func TestLimits(t *testing.T) {
	r := newRig(t)
	slow := holdIf(t, "count([1 | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); a * b == input.update]) > 2000000")
	t.Run("the time is over", func(t *testing.T) {
		q := r.question(prove.Equal, holdIf(t, many), holdIf(t, many))
		q.Points, q.Limits.Timeout = []decision.Name{"rollout/plan"}, time.Nanosecond
		report, err := prove.FindCounterexample(t.Context(), q)
		if err != nil || report.Stopped == "" || report.Found != nil || report.Points[0].Exhausted {
			t.Errorf("the report is %+v, %v", report, err)
		}
	})
	t.Run("late answers are no counterexample", func(t *testing.T) {
		q := r.question(prove.NeverLooser, holdIf(t, "input.update > 3"), slow)
		q.Engine, q.Cases = nil, nil // an engine that waits less
		q.Points = []decision.Name{"rollout/plan"}
		if _, err := prove.FindCounterexample(t.Context(), q); !errors.Is(err, prove.ErrLate) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("a condition that is none", func(t *testing.T) {
		q := r.question(prove.Equal, holdIf(t, many), holdIf(t, many))
		q.Unless = "input.("
		var condition prove.ConditionError
		if _, err := prove.FindCounterexample(t.Context(), q); !errors.As(err, &condition) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestTheSameSeedDrawsTheSameInputs(t *testing.T) {
	r := newRig(t)
	rule := func(condition string) *bundle.Bundle {
		b, err := bundle.FromFiles("x", map[string]string{"x.rego": `package extend.rollout.x

hold contains {"rule": "x.never", "reason": "Never", "message": "Never."} if {
	input.workload.namespace in {"a", "b", "c"}
	input.workload.labels[_] in {"d", "e"}
	` + condition + `
}
`})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var first string
	for range 3 {
		q := r.question(prove.Equal, rule("input.update > 41"), rule("input.update > 42"))
		q.Points, q.Limits.Worlds = []decision.Name{"rollout/plan"}, 150
		report, err := prove.FindCounterexample(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(text)
		}
		if string(text) != first {
			t.Errorf("one search reports\n%s\nand another one\n%s", first, text)
		}
	}
}
