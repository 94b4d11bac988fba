// SPDX-License-Identifier: Apache-2.0

// Package enginetest has an engine with small policies for tests of code that uses decisions.
package enginetest

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

const builtin = `package rollout

# METADATA
# title: How far
# labels:
#   id: rollout.plan
plan := {"limit": input.update, "maxUnavailable": 1, "holds": [h | some h in holds], "scatter": []}

holds contains h if {
	some name
	some h in data.extend.rollout[name].hold
}

# METADATA
# title: Paused
# description: The strategy is paused.
# labels:
#   id: rollout.paused
holds contains {"rule": "rollout.paused", "reason": "Paused", "message": "It is paused."} if input.strategy.paused
`

// Friday is a policy that holds the rollout of PlanFacts.
const Friday = `package extend.rollout.freeze

# METADATA
# title: No Fridays
# labels:
#   id: freeze.friday
hold contains {
	"rule": "freeze.friday", "reason": "Friday", "message": sprintf("Nothing is moved on Fridays (%d).", [input.now]),
	"until": "2026-01-05T00:00:00Z",
} if {
	input.workload.labels.freeze == "friday"
	moves
}

moves if input.groups.zone[_].total > 0
`

// Endless is a policy that takes longer than the budget of rollout/plan, and ends
// when it is stopped.
const Endless = `package extend.rollout.x

hold contains {"reason": "R", "message": "m"} if {
	some i in numbers.range(1, 3000)
	some j in numbers.range(1, 3000)
	i * j == -1
}
`

// PlanFacts returns the facts of a rollout of so many pods.
func PlanFacts(update int) rollout.PlanInput {
	return rollout.PlanInput{
		Now: 5, Update: update, Workload: rollout.Workload{Name: "web", Labels: map[string]string{"freeze": "friday"}},
		Groups: map[string]map[string]rollout.Group{"zone": {"a": {Total: 1}}},
	}
}

// WebSubject is the CloneSet that the decisions are about.
func WebSubject() decision.Subject {
	return decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "1"}
}

// New makes an engine whose clock stands still, and that gives decisions enough time on a busy
// machine.
func New(t testing.TB, sinks ...engine.Sink) *engine.Engine {
	t.Helper()
	opts := []engine.Option{engine.WithClock(func() time.Time { return time.Unix(0, 0).UTC() })}
	for _, s := range sinks {
		opts = append(opts, engine.WithSink(s))
	}
	return NewWithOptions(t, append(opts, engine.WithPatience(20))...)
}

// NewWithOptions makes an engine with these options alone.
func NewWithOptions(t testing.TB, opts ...engine.Option) *engine.Engine {
	t.Helper()
	e, err := engine.New(fstest.MapFS{"rollout/plan.rego": {Data: []byte(builtin)}}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// NewBundleSet makes a bundle of one file.
func NewBundleSet(t testing.TB, source string) bundle.Set {
	t.Helper()
	b, err := bundle.FromFiles("user", map[string]string{"p.rego": source})
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Set{b}
}

// CompileSnapshot makes a snapshot of a bundle of one file.
func CompileSnapshot(t testing.TB, e *engine.Engine, source string) *engine.Snapshot {
	t.Helper()
	s, err := e.CompileBundles(t.Context(), NewBundleSet(t, source))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
