// SPDX-License-Identifier: Apache-2.0

// Package replay makes recorded decisions again with a new bundle, and compares the answers with the
// earlier ones.
package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Side is one of the two sets of policies.
type Side struct {
	// Builtin is the bundle that answers every point.
	Builtin *bundle.Bundle
	// Set are the bundles beside it.
	Set bundle.Set
}

// Replay makes decisions again.
type Replay struct {
	candidate Side
	bundle    *bundle.Bundle
	baseline  *Side
	pace      compare.Pace
	groups    int
	samples   int
	clock     func() time.Time
}

// Option changes a replay.
type Option func(*Replay)

// WithBaseline compares with what other policies answer today, and not with what
// the records say.
func WithBaseline(s Side) Option { return func(r *Replay) { r.baseline = &s } }

// WithPace sets when a decision counts as slower.
func WithPace(p compare.Pace) Option { return func(r *Replay) { r.pace = p } }

// WithSamples sets how many differences are shown whole.
func WithSamples(n int) Option { return func(r *Replay) { r.samples = n } }

// WithGroups sets how many groups of differences the report lists one by one.
func WithGroups(n int) Option { return func(r *Replay) { r.groups = n } }

// New replays on a candidate. The bundle is the new one among its policies: its rules are the ones
// that the decisions should use.
func New(candidate Side, b *bundle.Bundle, opts ...Option) *Replay {
	r := &Replay{candidate: candidate, bundle: b, pace: compare.DefaultPace(), groups: 20, samples: 10, clock: time.Now}
	for _, o := range opts {
		o(r)
	}
	return r
}

// strikes is how many decisions in a row may time out before the rest is skipped: a bundle that loops
// would take hours.
const strikes = 10

// side is policies that are ready to decide.
type side struct {
	engine   *engine.Engine
	snapshot *engine.Snapshot
}

func (s Side) compilePolicies(ctx context.Context) (*side, error) {
	e, err := engine.FromBundle(s.Builtin)
	if err != nil {
		return nil, err
	}
	snapshot, err := e.CompileBundles(ctx, s.Set)
	if err != nil {
		e.Close()
		return nil, err
	}
	return &side{e, snapshot}, nil
}

// RunJob makes the decisions again, in the order in which they were made. It ends
// with the context's error when that is done.
func (r *Replay) RunJob(ctx context.Context, records []decision.Record) (*Report, error) {
	now, err := r.candidate.compilePolicies(ctx)
	if err != nil {
		return nil, fmt.Errorf("compiling with %s: %w", r.bundle.Name, err)
	}
	defer now.engine.Close()
	var then *side
	if r.baseline != nil {
		if then, err = r.baseline.compilePolicies(ctx); err != nil {
			return nil, fmt.Errorf("compiling the baseline: %w", err)
		}
		defer then.engine.Close()
	}
	counter := compare.NewCounter(compare.WithPace(r.pace), compare.WithGroups(r.groups), compare.WithSamples(r.samples))
	report := &Report{Candidate: now.snapshot.Revision(), Bundle: r.bundle.ID(), Baseline: Recorded}
	if then != nil {
		report.Baseline = then.snapshot.Revision()
	}
	hit, times := map[string]bool{}, latencies{}
	late := 0
	for i, old := range inOrder(records) {
		if then != nil {
			if old, err = then.replayDecision(ctx, old); err != nil {
				return nil, err
			}
		}
		fresh, err := now.replayFastest(ctx, old, r.pace)
		if err != nil {
			return nil, err
		}
		d, err := compare.DiffRecords(now.engine, old, fresh)
		if err != nil {
			return nil, err
		}
		counter.CountDecision(d, old.Duration, fresh.Duration)
		times.addDurations(old, fresh)
		report.addRecord(old)
		if then == nil {
			report.addMissingBundles(old, r.candidate)
		}
		for _, id := range fresh.Rules {
			hit[id] = true
		}
		if late++; d == nil || d.Kind != compare.Lost || fresh.Outcome != decision.TimedOut {
			late = 0
		}
		if late == strikes {
			report.Stopped = fmt.Sprintf("%d decisions in a row did not end in time", late)
			report.Skipped = len(records) - i - 1
			break
		}
	}
	report.finishReport(counter.CurrentTally(), now.snapshot, r.bundle, hit, times)
	return report, nil
}

// replayDecision makes a recorded decision again.
func (s *side) replayDecision(ctx context.Context, r decision.Record) (decision.Record, error) {
	out, err := compare.ReplayWithRetries(ctx, s.engine, s.snapshot, r, engine.Strikes)
	if err != nil {
		return out, err
	}
	out.ID, out.Time, out.Masked = r.ID, r.Time, r.Masked
	return out, nil
}

// tries is how often a decision that seems slower is made: the fastest counts.
const tries = 3

func (s *side) replayFastest(ctx context.Context, old decision.Record, pace compare.Pace) (decision.Record, error) {
	out, err := s.replayDecision(ctx, old)
	for i := 1; err == nil && i < tries && out.Outcome == decision.Decided && pace.IsSlower(old.Duration, out.Duration); i++ {
		var again decision.Record
		if again, err = s.replayDecision(ctx, old); again.Duration < out.Duration {
			out.Duration = again.Duration
		}
	}
	return out, err
}

// inOrder sorts records by their contents, so that a report depends on nothing else.
func inOrder(records []decision.Record) []decision.Record {
	out := slices.Clone(records)
	slices.SortStableFunc(out, func(a, b decision.Record) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Origin, b.Origin), cmp.Compare(a.ID, b.ID),
			strings.Compare(string(a.Point), string(b.Point)), strings.Compare(a.Subject.Namespace, b.Subject.Namespace), strings.Compare(a.Subject.Name, b.Subject.Name))
	})
	return out
}
