// SPDX-License-Identifier: Apache-2.0

package nearest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/enginetest"
	"github.com/regatta-sh/regatta/engine/nearest"
)

// library is a package of helpers that rules of other packages import.
const library = `package lib.calendar

late(now) if now > limit

limit := 10

tagged(object, [key, _]) if object.labels[key] == "yes"

tagged(object, "any") if object.labels.some
`

// one is a policy of one hold and its helpers, whose places begin with line 9.
func one(condition, helpers string) string {
	return `package extend.rollout.one
import data.lib.calendar as c
import data.lib.calendar.limit
# METADATA
# labels:
#   id: one
hold contains {"rule": "one", "reason": "One", "message": sprintf("%d %d", [limit, c.limit])} if { ` + condition + ` }

` + helpers + "\n"
}

// decided is an engine with such a policy, and what it decided.
func decided(t *testing.T, condition, helpers string) (*engine.Engine, decision.Record) {
	t.Helper()
	e := enginetest.New(t)
	b, err := bundle.FromFiles("user", map[string]string{"p.rego": one(condition, helpers), "lib.rego": library})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), enginetest.WebSubject(), enginetest.PlanFacts(7))
	return e, r
}

func TestNearestLooksIntoHelpers(t *testing.T) {
	for _, tc := range []struct {
		name, condition, helpers string
		want                     string
	}{
		{"any definition that is near would do", "busy", "busy if input.update > 10\nbusy if input.now >= 20\nbusy if { input.update > 90; input.now > 90 }", `
busy:
  false busy p.rego:9:1
    input.update > 10: input.update is 7, and would have to be more than 10 (0.3)
  false busy p.rego:10:1
    input.now >= 20: input.now is 5, and would have to be at least 20 (0.8)
`},
		{"each definition that is true would have to let go", "busy", "busy if input.update > 3\nbusy if input.now >= 5\nbusy if input.now > 50", `
busy:
  true busy p.rego:9:1
    input.update > 3: input.update is 7, and this ends when it is at most 3 (1.3)
  true busy p.rego:10:1
    input.now >= 5: input.now is 5, and this ends when it is less than 5 (0.0)
`},
		{"a definition without conditions cannot let go", "busy", "busy if input.update > 3\nbusy := true", `
busy:
`},
		{"what takes more than one condition", "busy", "busy if { input.update > 90; input.now > 90 }", `
busy:
  false busy p.rego:9:1 no single condition of it would do
`},
		{"a value that is a comparison", "busy", "busy := input.update > 10", `
busy:
  false busy p.rego:9:1
    input.update > 10: input.update is 7, and would have to be more than 10 (0.3)
`},
		{"a rule of another package by an import, with an argument that is a fact", "c.late(input.now)", "", `
c.late(input.now): input.now is 5
  false c.late(input.now) lib.rego:3:1
    now > limit: now is 5, and would have to be more than 10 (0.5)
`},
		{"a rule by its whole path, with an argument that is worked out", "data.lib.calendar.late(input.now * 3)", "", `
data.lib.calendar.late(input.now * 3): input.now is 5
  true data.lib.calendar.late(input.now * 3) lib.rego:3:1
    now > limit: now is 15, and this ends when it is at most 10 (0.5)
`},
		{"an argument that stands for a fact of its own", "tag := input.workload\nmarked(tag)", "marked(w) if w.labels.freeze == \"friday\"", `
marked(tag): tag is {"kind":"","labels":{"freeze":"friday"},"name":"web","namespace":"","replicas":0,"uid":""}
  true marked(tag) p.rego:10:1
    w.labels.freeze == "friday": w.labels.freeze is "friday", and this ends when it is other than "friday"
`},
		{"arguments that are patterns choose the definition", "w := input.workload\nnot c.tagged(w, [\"freeze\", 1])", "", `
not c.tagged(w, ["freeze", 1]): w is {"kind":"","labels":{"freeze":"friday"},"name":"web","namespace":"","replicas":0,"uid":""}
  false c.tagged(w, ["freeze", 1]) lib.rego:7:1
    object.labels[key] == "yes": object.labels[key] is "friday", and would have to be equal to "yes"
`},
		{"a negation of what is true", "not busy", "busy if { input.update > 3; input.now > 1 }", `
not busy:
  true busy p.rego:9:1
    input.update > 3: input.update is 7, and this ends when it is at most 3 (1.3)
    input.now > 1: input.now is 5, and this ends when it is at most 1 (4.0)
`},
		{"a negation of what one condition is missing", "not busy", "busy if { input.update > 3; input.now > 10 }", `
not busy:
  false busy p.rego:9:1
    input.now > 10: input.now is 5, and would have to be more than 10 (0.5)
`},
		{"a negation of several conditions", "not { input.update > 3; input.now > 10 }", "", `
not { input.update > 3; input.now > 10 }:
  false input.update > 3; input.now > 10
    input.now > 10: input.now is 5, and would have to be more than 10 (0.5)
`},
		{"one or the other", "input.update > 10 or input.now > 20", "", `
input.update > 10 or input.now > 20:
  false input.update > 10
    input.update > 10: input.update is 7, and would have to be more than 10 (0.3)
  false input.now > 20
    input.now > 20: input.now is 5, and would have to be more than 20 (0.8)
`},
		{"an element of a set of rules", "\"a\" in zones", "zones contains zone if { some zone, g in input.groups.zone; g.total > 4 }", `
"a" in zones: zones is [], and would have to be with "a"
  false "a" in zones p.rego:9:1
    g.total > 4: g.total is 1, and would have to be more than 4 (0.8)
`},
		{"an element by its key", "zones[\"a\"]", "zones contains zone if { some zone, g in input.groups.zone; g.total > 0 }", `
zones["a"]:
  true zones["a"] p.rego:9:1
    g.total > 0: g.total is 1, and this ends when it is at most 0 (1.0)
`},
		{"some element", "some zone in zones", "zones contains zone if { some zone, g in input.groups.zone; g.total > 4 }", `
some zone in zones: zones is []
  false zones p.rego:9:1
    g.total > 4: g.total is 1, and would have to be more than 4 (0.8)
`},
		{"an entry of an object of rules", "limits[\"a\"] > 3", "limits[zone] := g.total if some zone, g in input.groups.zone\nlimits.b := 5 if input.now > 9", `
limits["a"] > 3: limits["a"] is 1, and would have to be more than 3 (0.7)
  true limits["a"] p.rego:9:1 g.total g.total is 1
`},
		{"an else gives the value", "level == 2", "level := 1 if input.now > 9 else := 2 if input.update > 5 else := 3", `
level == 2: level is 2, and this ends when it is other than 2 (0.0)
  true level p.rego:9:29 2
    input.update > 5: input.update is 7, and this ends when it is at most 5 (0.4)
`},
		{"a false that is in the way", "ok", "ok := false if input.update > 5 else := true if input.now > 1", `
ok:
  true ok p.rego:9:1 false
    input.update > 5: input.update is 7, and this ends when it is at most 5 (0.4)
`},
		{"a true by default", "ok", "default ok := true\nok := false if input.update > 10", `
ok:
  false ok p.rego:10:1 false
    input.update > 10: input.update is 7, and would have to be more than 10 (0.3)
`},
		{"a false by default", "ok", "default ok := false\nok if input.update > 10", `
ok:
  false ok p.rego:10:1
    input.update > 10: input.update is 7, and would have to be more than 10 (0.3)
`},
		{"a name of the rule's own hides a helper", "busy := input.update\nbusy > 10", "busy if input.now > 90", `
busy > 10: busy is 7, and would have to be more than 10 (0.3)
`},
		{"other facts are not asked", "busy with input.update as 3", "busy if input.update > 10", `
busy with input.update as 3:
`},
		{"a comprehension is about no value in particular", "count([z | some z in [1]; busy(z)]) > 3", "busy(z) if input.update > z", `
count([z | some z in [1]; busy(z)]) > 3: count([z | some z in [1]; busy(z)]) is 1, and would have to be more than 3 (0.7)
`},
		{"four helpers deep", "a", "a if b\nb if d\nd if e\ne if input.update > 10", `
a:
  false a p.rego:9:1
    b:
      false b p.rego:10:1
        d:
          false d p.rego:11:1
            e:
`},
		{"a value that is not there", "left > 3", "left := input.workload.annotations.left", `
left > 3: left is not there
  false left p.rego:9:1
    input.workload.annotations.left: input.workload.annotations.left is not there
`},
		{"an argument that is worked out and large", "busy(numbers.range(1, 1000))", "busy(all) if count(all) > 2000", `
busy(numbers.range(1, 1000)):
`},
		{"more definitions than are listed", "busy", func() string {
			out := ""
			for i := range 40 {
				out += fmt.Sprintf("busy if input.update > %d\n", 50-i)
			}
			return out
		}(), `
busy:
  false busy p.rego:40:1
    input.update > 19: input.update is 7, and would have to be more than 19 (0.6)
  false busy p.rego:39:1
    input.update > 20: input.update is 7, and would have to be more than 20 (0.7)
  false busy p.rego:38:1
    input.update > 21: input.update is 7, and would have to be more than 21 (0.7)
  false busy p.rego:37:1
    input.update > 22: input.update is 7, and would have to be more than 22 (0.7)
  36 more
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, r := decided(t, tc.condition, tc.helpers)
			got, err := nearest.FindConditions(t.Context(), e, r)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, near := range append(got.Now, got.Almost...) {
				if near.Rule == "one" {
					tellConditions(&text, near.Conditions, "")
				}
			}
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), text.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

const opening = `package extend.rollout.opening

# METADATA
# labels:
#   id: opening
hold contains {"rule": "opening", "reason": "Closed", "message": cause, "until": until} if {
	until := min(hours)
}

hours contains hour if {
	hour := input.update
	hour > 10
}

cause := "late" if input.now > 3
`

func TestNearestOfANameThatOnlyTheHeadNeeds(t *testing.T) {
	e := enginetest.New(t)
	if err := e.ActivateBundles(t.Context(), enginetest.NewBundleSet(t, opening)); err != nil {
		t.Fatal(err)
	}
	_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), enginetest.WebSubject(), enginetest.PlanFacts(7))
	got, err := nearest.FindConditions(t.Context(), e, r)
	if err != nil {
		t.Fatal(err)
	}
	want := `almost hold opening p.rego:6:1
  until := min(hours): hours is []
    false hours p.rego:10:1
      hour > 10: hour is 7, and would have to be more than 10 (0.3)
almost hold rollout.paused Paused rollout/plan.rego:19:1
  input.strategy.paused: input.strategy.paused is false
`
	if diff := cmp.Diff(want, told(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// patience is a context that is over when it was asked so many times.
type patience struct {
	context.Context
	left int
}

func (p *patience) Err() error {
	if p.left--; p.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestNearestEndsHoweverManyHelpersThereAre(t *testing.T) {
	// Ten ways of ten conditions of ten ways, three times: a billion.
	var helpers strings.Builder
	for level := range 4 {
		for range 10 {
			fmt.Fprintf(&helpers, "h%d if {\n", level)
			for i := range 10 {
				fmt.Fprintf(&helpers, "h%d\ninput.now > %d\n", level+1, i-10)
			}
			helpers.WriteString("}\n")
		}
	}
	helpers.WriteString("h4 if input.update > 3\n")
	e, r := decided(t, "h0", helpers.String())
	got, err := nearest.FindConditions(&patience{t.Context(), 100}, e, r)
	if err != nil || !got.Partial || len(got.Now) != 1 || got.Now[0].Conditions[0].Text != "h0" {
		t.Errorf("%+v, %v", got, err)
	}
}
