// SPDX-License-Identifier: Apache-2.0

package nearest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/enginetest"
	"github.com/regatta-sh/regatta/engine/nearest"
	"github.com/regatta-sh/regatta/engine/record"
)

// nearby has a rule of each form that there is something to say about.
const nearby = `package extend.rollout.near

import future.keywords.not

# METADATA
# title: Many
# labels:
#   id: near.many
hold contains {"rule": "near.many", "reason": "TooMany", "message": "m"} if {
	limit := 5
	input.workload.labels.freeze == "friday"
	input.update > limit
	5 <= input.now
}

# METADATA
# labels:
#   id: near.most
hold contains {"rule": "near.most", "reason": "Most", "message": "m"} if input.update >= 100

# METADATA
# labels:
#   id: near.zone
hold contains {"rule": "near.zone", "reason": "Zone", "message": "m", "where": {"zone": zone}} if {
	some zone, group in input.groups.zone
	group.unavailable > 0
	not input.strategy.paused
}

# METADATA
# labels:
#   id: near.note
hold contains {"rule": "near.note", "reason": "Note", "message": "m"} if input.workload.annotations.note

# METADATA
# labels:
#   id: near.far
hold contains {"rule": "near.far", "reason": "Far", "message": "m"} if {
	input.update > 50
	input.now > 1767225600000000000
}

# METADATA
# labels:
#   id: near.year
hold contains {"rule": "near.year", "reason": "Year", "message": "m"} if input.now > 1767225600000000000
`

func TestNearest(t *testing.T) {
	b := record.NewBuffer()
	e := enginetest.New(t, b)
	if err := e.ActivateBundles(t.Context(), enginetest.NewBundleSet(t, nearby)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		in   rollout.PlanInput
		want string
	}{
		{
			"a rule that holds, by how near each condition is to its threshold", enginetest.PlanFacts(7), `
hold near.many Many p.rego:9:1
  5 <= input.now: input.now is 5, and this ends when it is less than 5 (0.0)
  input.update > limit: input.update is 7, and this ends when it is at most 5 (0.4)
  input.workload.labels.freeze == "friday": input.workload.labels.freeze is "friday", and this ends when it is other than "friday"
almost hold near.zone p.rego:24:1
  group.unavailable > 0: group.unavailable is 0, and would have to be more than 0 (0.0)
almost hold near.most p.rego:19:1
  input.update >= 100: input.update is 7, and would have to be at least 100 (0.9)
almost hold near.year p.rego:46:1
  input.now > 1767225600000000000: input.now is 5, and would have to be more than 2026-01-01T00:00:00Z (1.0)
almost hold rollout.paused Paused rollout/plan.rego:19:1
  input.strategy.paused: input.strategy.paused is false
almost hold near.note p.rego:33:1
  input.workload.annotations.note: input.workload.annotations.note is not there
`,
		},
		{
			"a rule that holds in a zone, and one that two conditions keep from it", func() rollout.PlanInput {
				q := enginetest.PlanFacts(2)
				q.Workload.Labels = nil
				q.Workload.Annotations = map[string]string{"note": "x"}
				q.Groups["zone"]["b"] = rollout.Group{Total: 1, Unavailable: 1}
				return q
			}(), `
hold near.zone p.rego:24:1
  group.unavailable > 0: group.unavailable is 1, and this ends when it is at most 0 (1.0)
  not input.strategy.paused: input.strategy.paused is false
hold near.note p.rego:33:1
  input.workload.annotations.note: input.workload.annotations.note is "x"
almost hold near.most p.rego:19:1
  input.update >= 100: input.update is 2, and would have to be at least 100 (1.0)
almost hold near.year p.rego:46:1
  input.now > 1767225600000000000: input.now is 5, and would have to be more than 2026-01-01T00:00:00Z (1.0)
almost hold rollout.paused Paused rollout/plan.rego:19:1
  input.strategy.paused: input.strategy.paused is false
`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), enginetest.WebSubject(), tc.in)
			got, err := nearest.FindConditions(t.Context(), e, r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), told(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The explanation of a rule that holds many zones has the facts of the zone that the
// question is about, the only one in its record.
func TestNearestIsAboutTheGroupThatIsHeld(t *testing.T) {
	e := enginetest.New(t)
	if err := e.ActivateBundles(t.Context(), enginetest.NewBundleSet(t, nearby)); err != nil {
		t.Fatal(err)
	}
	q := enginetest.PlanFacts(2)
	q.Groups = map[string]map[string]rollout.Group{"zone": {}}
	for zone, unavailable := range map[string]int{"a": 0, "b": 1, "c": 2, "d": 3} {
		q.Groups["zone"][zone] = rollout.Group{Total: 3, Unavailable: unavailable}
	}
	_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), enginetest.WebSubject(), q)
	all := r.Output.(rollout.PlanOutput)
	for zone, want := range map[string]string{
		"b": "group.unavailable is 1,", "c": "group.unavailable is 2,", "d": "group.unavailable is 3,",
		"x": "group.unavailable is 1,", // which the rule does not hold
	} {
		asked := r
		out := all
		out.Holds = []decision.Hold{{Rule: "near.zone", Reason: "Zone", Message: "m", Where: map[string]string{"zone": zone}}}
		asked.Output = out
		got, err := nearest.FindConditions(t.Context(), e, asked)
		if err != nil || len(got.Now) != 1 || !strings.Contains(told(got), want) {
			t.Errorf("of zone %s it tells %v\n%swant %s", zone, err, told(got), want)
		}
	}
}

func told(n nearest.Result) string {
	var out strings.Builder
	tell := func(prefix string, all []nearest.Rule) {
		for _, near := range all {
			out.WriteString(strings.Join(strings.Fields(prefix+near.Wish+" "+near.Rule+" "+near.Title+" "+near.Place), " ") + "\n")
			tellConditions(&out, near.Conditions, "  ")
		}
	}
	tell("", n.Now)
	tell("almost ", n.Almost)
	return out.String()
}

func tellConditions(out *strings.Builder, all []nearest.Condition, indent string) {
	for _, c := range all {
		line := indent + c.Text + ": " + c.Why
		if c.Distance != nil {
			line += fmt.Sprintf(" (%.1f)", *c.Distance)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
		for _, h := range c.Helpers {
			fmt.Fprintf(out, "%s  %v %s\n", indent, h.Holds, strings.Join(strings.Fields(h.Name+" "+h.Rule+" "+h.Place+" "+h.Text+" "+h.Why), " "))
			tellConditions(out, h.Conditions, indent+"    ")
		}
		if c.More > 0 {
			fmt.Fprintf(out, "%s  %d more\n", indent, c.More)
		}
	}
}

func TestNearestIsOfThePoliciesThatDecided(t *testing.T) {
	e := enginetest.New(t)
	_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), enginetest.WebSubject(), enginetest.PlanFacts(7))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := nearest.FindConditions(ctx, e, r); err != nil || !got.Partial {
		t.Errorf("without time: %+v, %v", got, err)
	}
	if err := e.ActivateBundles(t.Context(), enginetest.NewBundleSet(t, nearby)); err != nil {
		t.Fatal(err)
	}
	if _, err := nearest.FindConditions(t.Context(), e, r); err == nil {
		t.Error("other policies were asked")
	}
}

const guarded = `package protection

# METADATA
# labels:
#   id: label.always
always := {"rule": "label.always", "reason": "Protected", "message": "m"} if label == "Always"

label := input.object.labels.keep

denied contains d if some d in data.extend.protection[_].deny

deletion := {"allow": count(data.extend.protection[_].exempt) > 0, "reasons": [r | some r in {always} | denied]}
`

const breaker = `package extend.protection.breaker

# METADATA
# labels:
#   id: deny.many
deny contains {"rule": "deny.many", "reason": "Many", "message": "m"} if input.recent.deletes >= 10

# METADATA
# labels:
#   id: glass
exempt contains {"rule": "glass", "reason": "Glass", "message": "m"} if {
	input.object.annotations.glass
	"admins" in input.request.user.groups
}
`

func TestNearestOfARefusal(t *testing.T) {
	e, err := engine.New(fstest.MapFS{"p.rego": {Data: []byte(guarded)}}, engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.ActivateBundles(t.Context(), enginetest.NewBundleSet(t, breaker)); err != nil {
		t.Fatal(err)
	}
	question := protection.DeletionInput{
		Object: protection.Object{Labels: map[string]string{"keep": "Always"}}, Recent: protection.Recent{Deletes: 12},
		Request: protection.Request{User: protection.User{Groups: []string{"admins"}}},
	}
	_, r := engine.Decide(t.Context(), e, protection.DeletionPoint(), decision.Subject{}, question)
	got, err := nearest.FindConditions(t.Context(), e, r)
	if err != nil {
		t.Fatal(err)
	}
	want := `label.always p.rego:6:1
  label == "Always": label is "Always", and this ends when it is other than "Always"
    true label p.rego:8:1 input.object.labels.keep input.object.labels.keep is "Always"
deny deny.many p.rego:6:1
  input.recent.deletes >= 10: input.recent.deletes is 12, and this ends when it is less than 10 (0.2)
almost exempt glass p.rego:11:1
  input.object.annotations.glass: input.object.annotations.glass is not there
`
	if diff := cmp.Diff(want, told(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
