// SPDX-License-Identifier: Apache-2.0

package cost_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/cost"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/node"
	"github.com/regatta-sh/regatta/engine/decision/placement"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

func at(hour float64) time.Time {
	return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(hour * float64(time.Hour)))
}

// hold is a hold of a rule; until is an hour, 0 for none.
func hold(rule string, until float64) decision.Hold {
	h := decision.Hold{Rule: rule, Reason: "R", Message: "m"}
	if until > 0 {
		h.Until = at(until).Format(time.RFC3339)
	}
	return h
}

func subject(name string) decision.Subject {
	namespace, name, _ := strings.Cut(name, "/")
	return decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: namespace, Name: name, UID: fmt.Sprint(time.Now().UnixNano())}
}

func plan(hour float64, name string, holds ...decision.Hold) decision.Record {
	return decision.Record{Time: at(hour), Point: "rollout/plan", Subject: subject(name), Outcome: decision.Decided, Output: rollout.PlanOutput{Holds: holds}}
}

func scale(hour float64, name string, holds ...decision.Hold) decision.Record {
	return decision.Record{Time: at(hour), Point: "rollout/scale", Subject: subject(name), Outcome: decision.Decided, Output: rollout.ScaleOutput{Holds: holds}}
}

// round is a decision of a round of the controller, in which all have one time.
func round(hour float64, holds ...decision.Hold) decision.Record {
	r := plan(hour, "shop/web", holds...)
	r.Input = rollout.PlanInput{Now: r.Time.UnixNano()}
	r.Time = r.Time.Add(time.Duration(len(holds)+1) * time.Millisecond)
	return r
}

func broadcast(hour float64, out placement.BroadcastOutput) decision.Record {
	return decision.Record{Time: at(hour), Point: "placement/broadcast", Subject: subject("shop/job"), Outcome: decision.Decided, Output: out}
}

func deletion(hour float64, allow bool, rules ...string) decision.Record {
	out := protection.DeletionOutput{Allow: allow}
	for _, rule := range rules {
		out.Reasons = append(out.Reasons, hold(rule, 0))
	}
	return decision.Record{Time: at(hour), Point: "protection/deletion", Subject: subject("shop/web"), Outcome: decision.Decided, Output: out}
}

func TestWhatRulesCost(t *testing.T) {
	for name, tc := range map[string]struct {
		records   []decision.Record
		since     time.Duration
		namespace string
		want      string // rule held×workloads hours open denied
	}{
		"nothing": {want: ""},
		"a hold lasts until the next decision that does not have it": {
			records: []decision.Record{plan(1, "shop/web", hold("a", 0)), plan(2, "shop/web", hold("a", 0)), plan(4, "shop/web"), plan(9, "shop/web")},
			want:    "a 1×1 3.0h open 0 denied 0",
		},
		"a rule that holds again has held twice": {
			records: []decision.Record{plan(1, "shop/web", hold("a", 0)), plan(2, "shop/web"), plan(3, "shop/web", hold("a", 0)), plan(5, "shop/web")},
			want:    "a 2×1 3.0h open 0 denied 0",
		},
		"rules that hold together each cost the time, and one that joins does not begin the other anew": {
			records: []decision.Record{plan(1, "shop/web", hold("a", 0)), plan(2, "shop/web", hold("b", 0), hold("a", 0)), plan(4, "shop/web")},
			want:    "a 1×1 3.0h open 0 denied 0\nb 1×1 2.0h open 0 denied 0",
		},
		"one rule at two points costs the time once": {
			records: []decision.Record{plan(1, "shop/web", hold("a", 0)), scale(2, "shop/web", hold("a", 0)), plan(3, "shop/web"), scale(5, "shop/web")},
			want:    "a 1×1 4.0h open 0 denied 0",
		},
		"hours are those of all workloads together": {
			records: []decision.Record{plan(1, "shop/web", hold("a", 0)), plan(1, "bank/web", hold("a", 0)), plan(3, "shop/web"), plan(4, "bank/web")},
			want:    "a 2×2 5.0h open 0 denied 0",
		},
		"files are in any order": {
			records: []decision.Record{plan(4, "shop/web"), plan(2, "shop/web", hold("a", 0)), plan(1, "shop/web", hold("a", 0))},
			want:    "a 1×1 3.0h open 0 denied 0",
		},
		"another manager led for a while, and its file is read later": {
			records: []decision.Record{
				plan(1, "shop/web", hold("a", 0)), plan(5, "shop/web", hold("a", 0)), plan(20, "shop/web", hold("a", 0)), plan(25, "shop/web"),
				plan(10, "shop/web", hold("b", 0)), plan(12, "shop/web", hold("b", 0)),
			},
			want: "a 2×1 14.0h open 0 denied 0\nb 1×1 10.0h open 0 denied 0",
		},
		"a hold of many decisions goes on after one that another file has between them": {
			records: []decision.Record{
				plan(1, "shop/web", hold("a", 0)), plan(1.1, "shop/web", hold("a", 0)), plan(1.2, "shop/web", hold("a", 0)), plan(3, "shop/web"),
				plan(1.15, "shop/web"),
			},
			want: "a 1×1 2.0h open 0 denied 0",
		},
		"a hold that has not ended is open, to the last decision of all": {
			records: []decision.Record{plan(1, "shop/web", hold("a", 0)), plan(6, "bank/web")},
			want:    "a 1×1 5.0h open 1 denied 0",
		},
		"a hold that named its end and was not decided again ended then": {
			records: []decision.Record{plan(1, "shop/web", hold("a", 3)), plan(6, "bank/web")},
			want:    "a 1×1 2.0h open 0 denied 0",
		},
		"a hold beside one that names no end may last": {
			records: []decision.Record{plan(1, "shop/web", hold("a", 3), hold("b", 0)), plan(6, "bank/web")},
			want:    "a 1×1 5.0h open 1 denied 0\nb 1×1 5.0h open 1 denied 0",
		},
		"a hold that named its end ended then, since nothing was decided again": {
			records: []decision.Record{plan(1, "shop/web", hold("a", 2)), plan(200, "shop/web")},
			want:    "a 1×1 1.0h open 0 denied 0",
		},
		"a hold that was decided again after the time that it named went on": {
			records: []decision.Record{plan(1, "shop/web", hold("a", 2)), plan(2, "shop/web", hold("a", 9)), plan(5, "shop/web")},
			want:    "a 1×1 4.0h open 0 denied 0",
		},
		"a hold that names no end counts for a day after its last decision, and its end is not known": {
			records: []decision.Record{plan(1, "shop/web", hold("a", 0)), plan(2, "shop/web", hold("a", 0)), plan(700, "shop/web")},
			want:    "a 1×1 25.0h open 1 denied 0",
		},
		"a round that asks twice holds what either answer holds, and no round begins it anew": {
			records: []decision.Record{
				round(1, hold("a", 0)), round(1), round(1.1), round(1.1, hold("a", 0)), round(1.2, hold("a", 0)), round(1.2, hold("b", 0)), round(2), round(2),
			},
			want: "a 1×1 1.0h open 0 denied 0\nb 1×1 0.8h open 0 denied 0",
		},
		"a denied place is no hold": {
			records: []decision.Record{broadcast(1, placement.BroadcastOutput{Denials: []placement.Denial{{Rule: "d"}}}), plan(9, "shop/web")},
		},
		"holds of jobs, of images and of copies": {
			records: []decision.Record{
				broadcast(1, placement.BroadcastOutput{Holds: []placement.Hold{{Rule: "a"}}}), broadcast(3, placement.BroadcastOutput{}),
				{Time: at(1), Point: "node/images", Subject: subject("shop/pull"), Outcome: decision.Decided, Output: node.ImagesOutput{Holds: []node.Hold{{Rule: "b"}}}},
				{Time: at(1), Point: "placement/distribution", Subject: subject("shop/copy"), Outcome: decision.Decided, Output: placement.DistributionOutput{Holds: []decision.Hold{hold("c", 0)}}},
				plan(2, "shop/web"),
			},
			want: "a 1×1 2.0h open 0 denied 0\nb 1×1 2.0h open 1 denied 0\nc 1×1 2.0h open 1 denied 0",
		},
		"a run that is left out is not held": {
			records: []decision.Record{
				{Time: at(1), Point: "rollout/run", Subject: subject("shop/cron"), Outcome: decision.Decided, Output: rollout.RunOutput{Action: "Skip", Holds: []decision.Hold{hold("a", 0)}}},
				plan(9, "shop/web"),
			},
		},
		"a fallback is no rule, and ends no hold": {
			records: []decision.Record{
				plan(1, "shop/web", hold("a", 0)),
				{Time: at(2), Point: "rollout/plan", Subject: subject("shop/web"), Outcome: decision.TimedOut, Output: rollout.PlanOutput{Holds: []decision.Hold{hold("engine", 0)}}},
				plan(3, "shop/web", hold("a", 0)), plan(4, "shop/web"),
			},
			want: "a 1×1 3.0h open 0 denied 0",
		},
		"a subset with the name of a verdict denies nothing": {
			records: []decision.Record{{Time: at(1), Point: "placement/subset", Subject: subject("shop/web"), Outcome: decision.Decided, Output: placement.SubsetOutput{Subset: "Deny", Denials: []placement.Denial{{Rule: "a"}}}}},
		},
		"pods that wait for others are the cost of no rule": {
			records: []decision.Record{plan(1, "shop/web", hold(decision.RuleWalk, 0)), plan(2, "shop/web")},
		},
		"only what is since then": {
			records: []decision.Record{plan(1, "shop/web", hold("a", 0)), plan(3, "shop/web"), plan(4, "shop/web", hold("b", 0)), plan(8, "shop/web"), deletion(3, false, "c"), deletion(9, false, "d"), plan(10, "shop/web")},
			since:   4 * time.Hour,
			want:    "b 1×1 2.0h open 0 denied 0\nd 0×0 0.0h open 0 denied 1",
		},
		"requests are denied by each of the rules, and what is allowed is not": {
			records: []decision.Record{deletion(1, false, "a", "b"), deletion(2, false, "a"), deletion(3, true, "a")},
			want:    "a 0×0 0.0h open 0 denied 2\nb 0×0 0.0h open 0 denied 1",
		},
		"of a namespace, to the last decision of all": {
			records:   []decision.Record{plan(1, "shop/web", hold("a", 0)), plan(1, "bank/web", hold("b", 0)), plan(9, "bank/web")},
			namespace: "shop",
			want:      "a 1×1 8.0h open 1 denied 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := cost.NewCounter(tc.namespace)
			for _, r := range tc.records {
				c.AddRecord(r)
			}
			var lines []string
			for _, r := range c.BuildReport(cost.Window{Since: tc.since, Quiet: 24 * time.Hour}).Rules {
				lines = append(lines, fmt.Sprintf("%s %d×%d %.1fh open %d denied %d", r.Rule, r.Held, r.WorkloadCount, r.Hours, r.Open, r.Denied))
			}
			if got := strings.Join(lines, "\n"); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestTheOrderOfTheRecordsIsNoMatter(t *testing.T) {
	var records []decision.Record
	for i := range 40 {
		var holds []decision.Hold
		for j, rule := range []string{"a", "b", "c"} {
			if i*(j+3)%5 < 2 {
				holds = append(holds, hold(rule, 0))
			}
		}
		records = append(records, plan(float64(i), "shop/web", holds...), scale(float64(i)+.5, "shop/web", holds...), plan(float64(i)+.25, "bank/web", holds...))
	}
	report := func(records []decision.Record) string {
		c := cost.NewCounter("")
		for _, r := range records {
			c.AddRecord(r)
		}
		var out strings.Builder
		if err := c.BuildReport(cost.Window{Since: 30 * time.Hour, Quiet: 24 * time.Hour}).WriteText(&out, 5); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := report(records)
	backwards := slices.Clone(records)
	slices.Reverse(backwards)
	odd := slices.Clone(records)
	slices.SortStableFunc(odd, func(a, b decision.Record) int { return a.Time.Minute() - b.Time.Minute() })
	for _, other := range [][]decision.Record{backwards, odd} {
		if got := report(other); got != want {
			t.Errorf("in another order\n%s\nwant\n%s", got, want)
		}
	}
	if !strings.Contains(want, "CloneSet bank/web") {
		t.Errorf("no workload is named:\n%s", want)
	}
}

func TestDecisionsAreThoseOfTheTimeThatIsAskedFor(t *testing.T) {
	c := cost.NewCounter("")
	for _, hour := range []float64{1, 2, 30, 31, 31.5} {
		r := plan(hour, "shop/web")
		if hour < 31 {
			r.Outcome = decision.TimedOut
		}
		c.AddRecord(r)
	}
	for since, want := range map[time.Duration]string{0: "5 3", 2 * time.Hour: "3 1", time.Hour: "3 1", 30 * time.Minute: "2 0"} {
		r := c.BuildReport(cost.Window{Since: since})
		if got := fmt.Sprintf("%d %d", r.Decisions, r.Undecided); got != want {
			t.Errorf("since %s: %s, want %s", since, got, want)
		}
	}
}
