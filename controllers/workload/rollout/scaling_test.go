// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/rules"
)

// scaleQuota holds scaling out until ten minutes after the time of testRound, and scaling in as the built-in rules do.
const scaleQuota = `package override.rollout

scale := {
	"create": 0, "createCurrent": 0, "delete": 0, "deleteCurrent": 0, "keep": [], "planned": "None",
	"keys": [], "then": [], "descending": [], "holds": [h | some h in holding],
}

holding contains {"rule": "quota", "reason": "Quota", "message": "No more pods.", "until": "1970-01-12T13:56:40Z"} if input.up > 0

holding contains {"rule": "rollout.scale.later", "reason": "Later", "message": "Later.", "until": "1970-01-12T13:51:40Z"} if input.down > 0
`

// An event tells when a hold of the scaling begins and when it ends, and the policies are asked again at the time that the hold names.
func TestHoldsOfTheScalingAreToldAndEndInTime(t *testing.T) {
	e := rules.Engine(t, scaleQuota)
	first, f := testRound(e, 2, 0, nil)
	events := record.NewFakeRecorder(10)
	first.c.Events = events
	held := []string{"Warning ScaleHeld Quota: No more pods. (rule quota)"}
	for _, round := range []struct {
		name     string
		up, down int
		again    time.Duration
		events   []string
	}{
		{"nothing is held", 0, 0, 0, nil},
		{"a policy holds", 1, 0, 10 * time.Minute, held},
		{"it holds still", 1, 0, 10 * time.Minute, nil},
		{"it holds no longer", 0, 0, 0, []string{"Normal NotHeld No policy holds the scaling any more."}},
		{"scaling goes on step by step", 0, 1, 5 * time.Minute, nil},
		{"a policy holds besides", 1, 1, 5 * time.Minute, held},
	} {
		r := &Round{c: first.c, Workload: first.Workload, Now: first.Now, memory: first.memory}
		in := points.ScaleInput{Now: r.Now.UnixNano(), Workload: f.WorkloadFacts(), Up: round.up, Down: round.down}
		for range 2 { // about creations, and about those of a surge
			AskScale(t.Context(), r, f, in)
		}
		if len(r.scaleHolds) > 1 {
			t.Errorf("%s: the round tells %+v, want each hold once", round.name, r.scaleHolds)
		}
		r.reportScaleHold(f, Result{Decisions: Decisions{Looked: true, LimitAsked: true}})
		if r.again.after != round.again {
			t.Errorf("%s: it is asked again after %s, want %s", round.name, r.again.after, round.again)
		}
		var got []string
		for len(events.Events) > 0 {
			got = append(got, <-events.Events)
		}
		if !slices.Equal(got, round.events) {
			t.Errorf("%s: the events are %q, want %q", round.name, got, round.events)
		}
	}
}

// A round that has not come to ask about the pods that the update creates, and is not held itself, says nothing new.
func TestARoundThatDoesNotAskAboutTheSurgeKeepsWhatWasReported(t *testing.T) {
	e := rules.Engine(t, scaleQuota)
	first, f := testRound(e, 2, 0, nil)
	f.Difference.Update = 1
	events := record.NewFakeRecorder(10)
	first.c.Events = events
	scaling := decision.Hold{Rule: "quota", Reason: "Quota", Message: "No more pods."}
	surge := decision.Hold{Rule: "nights", Reason: "Night", Message: "No surge at night."}
	for _, round := range []struct {
		name   string
		holds  []decision.Hold
		res    Result
		events int
	}{
		{"the scaling is held, and so is the surge", []decision.Hold{scaling, surge}, Result{Decisions: Decisions{Looked: true, LimitAsked: true, Limited: &surge}}, 1},
		{"the round ends before it asks", nil, Result{}, 0},
		{"the plan holds the whole before it asks", nil, Result{Decisions: Decisions{Looked: true}}, 0},
		{"nothing is held any more", nil, Result{Decisions: Decisions{Looked: true, LimitAsked: true}}, 1},
	} {
		r := &Round{c: first.c, Workload: first.Workload, Now: first.Now, memory: first.memory, scaleHolds: round.holds}
		r.reportScaleHold(f, round.res)
		if len(events.Events) != round.events {
			t.Errorf("%s: %d events, want %d", round.name, len(events.Events), round.events)
		}
		for len(events.Events) > 0 {
			<-events.Events
		}
	}
}
