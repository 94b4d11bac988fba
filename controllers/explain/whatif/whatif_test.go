// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/rules"
)

// approval holds a rollout that is not approved, gold pods, and one zone.
const approval = `package extend.rollout.approval

# METADATA
# title: Not approved
# labels:
#   id: approval.missing
hold contains {"rule": "approval.missing", "reason": "NotApproved", "message": sprintf("Not approved: %s.", [approved])} if {
	approved != input.revisions.update
}

approved := object.get(input.workload, ["annotations", "approved"], "nothing")

# METADATA
# title: Gold stays
# labels:
#   id: approval.gold
hold contains {"rule": "approval.gold", "reason": "Gold", "message": sprintf("%s is gold.", [pod.name]), "pod": pod.name} if {
	some pod in input.pods
	pod.labels.tier == "gold"
}

# METADATA
# title: Zone b waits
# labels:
#   id: approval.zone
hold contains {"rule": "approval.zone", "reason": "Zone", "message": "Zone b waits.", "where": {"zone": "b"}} if {
	input.workload.labels.zones == "apart"
}
`

// counting counts the records of decisions.
type counting struct{ records int }

func (c *counting) RecordDecision(decision.Record) { c.records++ }

func newEngine(t *testing.T, set bundle.Set, options ...engine.Option) *engine.Engine {
	t.Helper()
	e := rules.EngineWith(t, options...)
	if err := e.ActivateBundles(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	return e
}

func bundleOf(t *testing.T, name, text string) *bundle.Bundle {
	t.Helper()
	b, err := bundle.FromFiles(name, map[string]string{name + ".rego": text})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// planInput is a rollout of web-1 to web-2 on a Saturday.
func planInput() rollout.PlanInput {
	return rollout.PlanInput{
		Now:       time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC).UnixNano(),
		Workload:  rollout.Workload{Kind: "CloneSet", Namespace: "shop", Name: "web", Replicas: 10, Labels: map[string]string{"zones": "together"}},
		Strategy:  rollout.Strategy{Type: "RollingUpdate", Policy: "InPlaceIfPossible"},
		Revisions: rollout.Revisions{Current: "web-1", Update: "web-2"},
		Counts:    rollout.Counts{Total: 10, Ready: 10, Available: 10}, Update: 10, MaxUnavailable: 2,
	}
}

func rankInput() rollout.RankInput {
	in := planInput()
	return rollout.RankInput{
		Workload: in.Workload, Strategy: in.Strategy,
		Pods: []rollout.PodFacts{{Name: "web-0", Labels: map[string]string{"tier": "gold"}, Node: "n", Assigned: 1, Phase: 2, Ready: 1}},
	}
}

// newBasis is what an answer about pod web-0, or with the plan alone about its workload, is based on.
func newBasis(e *engine.Engine, inputs ...any) *Basis {
	subject := decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web"}
	b := &Basis{Engine: e}
	for _, in := range inputs {
		r := decision.Record{Subject: subject, Revision: e.ActiveSnapshot().RevisionFor(subject), Input: in}
		for _, p := range catalog.All() {
			if p.In == reflect.TypeOf(in) {
				r.Point = p.Name
			}
		}
		b.Records = append(b.Records, r)
	}
	return b
}

// describeResult writes a result in one line: the facts, and what of each decision would be another.
func describeResult(r *Result) string {
	if r.Invalid+r.Error != "" {
		return strings.TrimSpace("invalid: " + r.Invalid + " error: " + r.Error)
	}
	text := func(v *string) string {
		if v == nil {
			return "none"
		}
		return *v
	}
	var out []string
	for _, f := range r.Facts {
		out = append(out, fmt.Sprintf("%s %s->%s", f.Name, text(f.Was), text(f.Is)))
	}
	for _, d := range r.Decisions {
		line := fmt.Sprintf("%s %s->%s", d.Point, d.Was, d.Is)
		if !d.Changed {
			line = string(d.Point) + " same"
		}
		for word, reasons := range map[string][]record.Reason{"gone": d.Gone, "new": d.New, "kept": d.Kept} {
			for _, reason := range reasons {
				out = append(out, fmt.Sprintf("%s %s %s %q", word, reason.Rule, reason.Place, reason.Message))
			}
		}
		for _, f := range d.Fields {
			line += fmt.Sprintf(" %s %s->%s", f.Name, text(f.Was), text(f.Is))
		}
		out = append(out, strings.TrimSpace(line+" "+d.Error))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func evaluateChanges(t *testing.T, b *Basis, texts ...string) *Result {
	t.Helper()
	changes, err := ParseChanges(texts)
	if err != nil {
		t.Fatal(err)
	}
	return b.DecideAgain(t.Context(), changes)
}

func TestWhatWouldChange(t *testing.T) {
	count := &counting{}
	files, err := fs.Sub(policies.Examples, "examples/change-freeze")
	if err != nil {
		t.Fatal(err)
	}
	freeze, err := bundle.FromFS("change-freeze", files)
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, bundle.Set{bundleOf(t, "approval", approval)}, engine.WithSink(count))
	frozen := newEngine(t, bundle.Set{freeze})
	plan, pod, calendar := newBasis(e, planInput()), newBasis(e, planInput(), rankInput()), newBasis(frozen, planInput())
	missing := `gone approval.missing approval.rego:3:1 "Not approved: nothing."`
	for name, tc := range map[string]struct {
		basis *Basis
		texts []string
		want  string
	}{
		"an annotation releases the rollout": {plan, []string{`workload.annotations["approved"]="web-2"`},
			missing + "\nrollout/plan Hold->Go\nworkload.annotations.approved none->web-2"},
		"that, without quotes": {plan, []string{`workload.annotations.approved=web-2`},
			missing + "\nrollout/plan Hold->Go\nworkload.annotations.approved none->web-2"},
		"another value only changes the message": {plan, []string{`workload.annotations.approved=web-1`},
			`kept approval.missing approval.rego:3:1 "Not approved: web-1."` + "\nrollout/plan Hold->Hold\nworkload.annotations.approved none->web-1"},
		"a value that is a number in JSON is a text": {plan, []string{`workload.annotations.approved=2`},
			`kept approval.missing approval.rego:3:1 "Not approved: 2."` + "\nrollout/plan Hold->Hold\nworkload.annotations.approved none->2"},
		"a label holds a zone too": {plan, []string{`workload.labels.zones=apart`},
			`kept approval.missing approval.rego:3:1 "Not approved: nothing."` + "\n" + `new approval.zone approval.rego:22:1 "Zone b waits."` + "\nrollout/plan Hold->Hold\nworkload.labels.zones together->apart"},
		"a fact that no rule reads changes nothing": {plan, []string{`workload.labels.team=blue`},
			`kept approval.missing approval.rego:3:1 "Not approved: nothing."` + "\nrollout/plan same\nworkload.labels.team none->blue"},
		"what is not there can be removed": {plan, []string{`workload.labels.team-`},
			`kept approval.missing approval.rego:3:1 "Not approved: nothing."` + "\nrollout/plan same\nworkload.labels.team none->none"},
		"several facts together": {plan, []string{`workload.annotations.approved=web-2`, `maxUnavailable=1`, `workload.labels.zones-`},
			missing + "\nmaxUnavailable 2->1\nrollout/plan Hold->Go maxUnavailable 2->1\nworkload.annotations.approved none->web-2\nworkload.labels.zones together->none"},
		"a field that is removed is zero": {plan, []string{`workload.annotations.approved=web-2`, `update-`},
			missing + "\nrollout/plan Hold->Go limit 10->0\nupdate 10->0\nworkload.annotations.approved none->web-2"},
		"of a pod, its label": {pod, []string{`pods[0].labels.tier=silver`},
			`gone approval.gold approval.rego:13:1 "web-0 is gold."` + "\npods[0].labels.tier gold->silver\nrollout/rank Partly->Order"},
		"of a pod, a fact of both decisions": {pod, []string{`workload.annotations.approved=web-2`},
			missing + "\n" + `kept approval.gold approval.rego:13:1 "web-0 is gold."` + "\nrollout/plan Hold->Go\nrollout/rank same\nworkload.annotations.approved none->web-2"},
		"another time": {calendar, []string{`now=2026-03-16T12:00:00+01:00`},
			"gone change-freeze.closed change-freeze.rego:10:1 \"The change freeze holds CloneSet shop/web because Saturday is not a working day; it ends at 2026-03-16T09:00:00+01:00.\"\nnow 1773489600000000000->1773658800000000000\nrollout/plan Hold->Go"},

		"a misspelt field": {plan, []string{`workload.anotations.approved=x`}, "invalid: workload.anotations.approved is no fact of rollout/plan: " +
			"workload has no field anotations; it has annotations, kind, labels, name, replicas and 4 more error:"},
		"a misspelt field of the input": {pod, []string{`pod.labels.tier=x`}, "invalid: pod.labels.tier is no fact of rollout/rank: the input has no field pod; it has pods, workload, strategy error:"},
		"a fact of another point":       {plan, []string{`pods[0].name=x`}, "invalid: pods[0].name is no fact of rollout/plan: the input has no field pods; it has now, counts, groups, update, restart and 4 more error:"},
		"a key with dots": {plan, []string{`workload.labels.app.kubernetes.io/name=x`},
			`invalid: workload.labels.app.kubernetes["io/name"] is no fact of rollout/plan: workload.labels.app has no fields; write a key that has dots in brackets: workload.labels["app.kubernetes.io/name"] error:`},
		"a field of a number":   {plan, []string{`update.x=1`}, "invalid: update.x is no fact of rollout/plan: update has no fields error:"},
		"a key of a list":       {pod, []string{`pods.x=1`}, "invalid: pods.x is no fact of rollout/rank: pods is a list, and \"x\" is no index: write pods[0] error:"},
		"an index of no list":   {pod, []string{`workload[0]=1`}, "invalid: workload[0] is no fact of rollout/plan: workload is no list, so [0] names nothing in it error:"},
		"an index that is high": {pod, []string{`pods[2].name=x`}, "invalid: pods[2]: the list has 1 elements, so the index is at most 1 error:"},
		"a text for a number":   {plan, []string{`workload.replicas=many`}, "invalid: workload.replicas is a string, and must be an integer error:"},
		"nothing for a number":  {plan, []string{`update=`}, "invalid: update is a string, and must be an integer error:"},
		"a large number":        {plan, []string{`update=1e30`}, "invalid: update is the number 1e30, and must be an integer error:"},
		"a number for a list":   {pod, []string{`pods=1`}, "invalid: pods is a number, and must be a list error:"},
		"a wrong field in it":   {pod, []string{`pods=[{"name":1}]`}, "invalid: pods: name is a number, and must be a string error:"},
		"an unknown field":      {pod, []string{`strategy={"x":1}`}, `invalid: strategy: unknown field "x" error:`},
		"a time that is none":   {plan, []string{`now=soon`}, "invalid: now is \"soon\", and must be nanoseconds since 1970 or a time such as 2026-12-24T10:00:00Z error:"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describeResult(evaluateChanges(t, tc.basis, tc.texts...)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
	if count.records != 0 {
		t.Errorf("%d decisions are recorded", count.records)
	}
	if engine.Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, planInput()); count.records != 1 {
		t.Errorf("%d records of a decision that is acted on", count.records)
	}
	if diff := reflect.DeepEqual(plan.Records[0].Input, planInput()); !diff {
		t.Errorf("the remembered input is now %+v", plan.Records[0].Input)
	}
}

func TestARequestWouldBeAllowed(t *testing.T) {
	e := newEngine(t, nil)
	in := protection.BudgetInput{
		Request: protection.Request{Operation: protection.Evict, User: protection.User{Name: "ann"}},
		Object:  protection.Object{Resource: "pods", Kind: "Pod", Namespace: "shop", Name: "web-1"},
		Pod:     protection.PodState{Ready: true, Consistent: true},
		Budget:  &protection.Budget{Name: "web", Desired: 8, Total: 10, Current: 8},
	}
	r := evaluateChanges(t, newBasis(e, in), "budget.allowed=1")
	if len(r.Decisions) != 1 || r.Decisions[0].Was != protection.Denied || r.Decisions[0].Is != protection.Allowed || len(r.Decisions[0].Gone) != 1 || !r.HasChanges() {
		t.Errorf("got\n%s", describeResult(r))
	}
	r = evaluateChanges(t, newBasis(e, in), "budget-")
	if len(r.Decisions) != 1 || r.Decisions[0].Is != protection.Allowed || *r.Facts[0].Was == "" || r.Facts[0].Is != nil {
		t.Errorf("without the budget, got\n%s", describeResult(r))
	}
}

func TestThereIsNothingToDecideAgain(t *testing.T) {
	e := newEngine(t, bundle.Set{bundleOf(t, "approval", approval)})
	b := newBasis(e, planInput())
	var none *Basis
	for _, b := range []*Basis{none, {Engine: e}} {
		if r := evaluateChanges(t, b, "update=1"); !strings.Contains(r.Error, "no decision of a policy is remembered") {
			t.Errorf("of no decision: %s", describeResult(r))
		}
	}
	changes, err := ParseChanges([]string{"update=1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := b.DecideAgain(ctx, changes); !strings.Contains(r.Error, "there was no time") {
		t.Errorf("without time: %s", describeResult(r))
	}
	if err := e.ActivateBundles(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if r := evaluateChanges(t, b, "update=1"); !strings.Contains(r.Error, "are not active any more") {
		t.Errorf("of policies that are gone: %s", describeResult(r))
	}
}

// Secrets in the facts are masked, and so is what a rule says of them.
func TestSecretsAreMasked(t *testing.T) {
	e := newEngine(t, bundle.Set{bundleOf(t, "leaky", `package extend.rollout.leaky

hold contains {"rule": "leaky", "reason": "Leaky", "message": sprintf("It has %s.", [input.workload.annotations["db-password"]])} if input.update > 5
`)})
	in := planInput()
	in.Workload.Annotations = map[string]string{"db-password": "correct horse battery"}
	for _, texts := range [][]string{{`workload.annotations["db-password"]=secret stapler`}, {"update=1"}, {"update=20"}} {
		text, err := json.Marshal(evaluateChanges(t, newBasis(e, in), texts...))
		if err != nil || strings.Contains(string(text), "horse") || strings.Contains(string(text), "stapler") || !strings.Contains(string(text), "[masked]") {
			t.Errorf("%v: %v, got %s", texts, err, text)
		}
	}
}

// A secret that ends behind the bound of a message is masked all the same.
func TestSecretsAtTheBoundOfAMessageAreMasked(t *testing.T) {
	e := newEngine(t, bundle.Set{bundleOf(t, "leaky", `package extend.rollout.leaky

padding := concat("", ["x" | some _ in numbers.range(1, 1010)])

hold contains {"rule": "leaky", "reason": "Leaky", "message": concat("", [padding, " ", input.workload.annotations["db-password"]])} if input.update > 5
`)})
	in := planInput()
	in.Workload.Annotations = map[string]string{"db-password": "correct horse battery"}
	r := evaluateChanges(t, newBasis(e, in), "update=20")
	if text, err := json.Marshal(r); err != nil || strings.Contains(string(text), "correct") || !strings.Contains(string(text), "Leaky") {
		t.Errorf("%v, got %s", err, text)
	}
}

// A result is part of a reply, which has a bound.
func TestResultsAreBounded(t *testing.T) {
	e := newEngine(t, bundle.Set{bundleOf(t, "many", `package extend.rollout.many

hold contains {"rule": "many", "reason": "Many", "message": concat("", [format_int(n, 10) | some n in numbers.range(1, 2000)]), "pod": format_int(i, 10)} if {
	input.update > 10
	some i in numbers.range(1, 25)
}
`)})
	r := evaluateChanges(t, newBasis(e, planInput()), "update=11", `workload.annotations.x=`+strings.Repeat("x", 3000))
	text, err := json.Marshal(r)
	if err != nil || len(text) > 32<<10 || len(r.Decisions[0].New) != maxReasons || r.Decisions[0].More != 25-maxReasons {
		t.Errorf("%v, %d bytes: %.2000s", err, len(text), text)
	}
}

// Every fact of every point can be named, and its zero value can be set: each type of the contract is known.
func TestFactsOfAllPoints(t *testing.T) {
	for _, p := range catalog.All() {
		zero, err := json.Marshal(reflect.New(p.In).Elem().Interface())
		if err != nil {
			t.Fatal(err)
		}
		for name := range jsonFields(p.In) {
			kind, unknown := resolveField(p.In, []step{{name: name}})
			if unknown != nil {
				t.Errorf("%s: %v", p.Name, unknown)
				continue
			}
			value, err := json.Marshal(reflect.New(kind).Elem().Interface())
			if err != nil {
				t.Fatal(err)
			}
			q := &question{point: p, changes: []fieldChange{{Change{fact: name, steps: []step{{name: name}}, value: string(value)}, kind, 0}}}
			if kind.Kind() == reflect.String {
				q.changes[0].value = ""
			}
			after, err := q.changeInput(zero)
			if err != nil || decodeStrictly(after, reflect.New(p.In).Interface()) != nil {
				t.Errorf("%s: %s cannot be set to %s: %v", p.Name, name, value, err)
			}
		}
	}
}

// A user who may get a pod reads no other objects by the values that facts have.
func TestOnlyValuesOfTheAnswerAreShown(t *testing.T) {
	text := func(v string) *string { return &v }
	r := &Result{Facts: []Fact{
		{Name: "strategy.paused", Was: text("true")}, {Name: "workload.labels.app", Was: text("web")}, {Name: `workload.labels["a/b"]`, Was: text("c")},
		{Name: "workload.labels", Was: text("{}")}, {Name: "workload", Was: text("{}")}, {Name: "workload.annotations", Was: text("{}")}, {Name: "strategy.pausedBy", Was: text("jane")},
	}}
	r.HideValues([]string{"strategy.paused", "workload.labels"})
	for i, isShown := range []bool{true, true, true, true, false, false, false} {
		if f := r.Facts[i]; (f.Was != nil) != isShown || f.Hidden == isShown {
			t.Errorf("%s: %+v, want it shown: %t", f.Name, f, isShown)
		}
	}
}
