// SPDX-License-Identifier: Apache-2.0

// Package gate decides whether a bundle may become active. It checks the rules of the bundle, compiles
// it with everything it would be active with, compares its answers with the contract, runs its tests
// and makes recent decisions again. A bundle is not trusted in these steps: a Runner, which may be
// another process, runs them.
package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// Stage is a step of the gate.
type Stage string

// The stages, in their order. Fetching and the signature come before, with
// package bundle; the swap comes after, with the engine.
const (
	Packages Stage = "packages" // what the bundle extends and replaces
	Compile  Stage = "compile"  // with all it would be active with
	Schemas  Stage = "schemas"  // references to facts that exist
	Types    Stage = "types"    // answers of the right form
	Tests    Stage = "tests"    // the bundle's own
	Replay   Stage = "replay"   // recent decisions, made again
	Limits   Stage = "limits"   // of time or memory, in whichever step
)

// Report is the result of a check.
type Report struct {
	// Refused is the stage that refused the bundle; empty if none did.
	Refused  Stage           `json:"refused,omitempty"`
	Problems module.Problems `json:"problems,omitempty"`
	// Stages are the stages that were run; the one that refused is the last.
	Stages   []Took    `json:"stages,omitempty"`
	Tests    []Test    `json:"tests,omitempty"`
	Coverage *Coverage `json:"coverage,omitempty"`
	// LimitedIn is the stage that ran out of memory or time, where Refused is Limits; empty if it is not known.
	LimitedIn Stage `json:"limitedIn,omitempty"`
	// Replayed is how many decisions were made again, of a sample of recent ones; Differences are those
	// with another answer. They are information, not errors.
	Replayed    int                  `json:"replayed,omitempty"`
	Differences []compare.Difference `json:"differences,omitempty"`
}

// Took is a stage and how long it took.
type Took struct {
	Stage    Stage         `json:"stage"`
	Duration time.Duration `json:"durationNanoseconds"`
}

// Test is one test of a bundle.
type Test struct {
	Name     string        `json:"name"`
	Place    string        `json:"place"`
	Passed   bool          `json:"passed"`
	Skipped  bool          `json:"skipped,omitempty"`
	Message  string        `json:"message,omitempty"`
	Duration time.Duration `json:"durationNanoseconds"`
}

// Coverage is how much of a bundle its tests evaluate.
type Coverage struct {
	Covered int `json:"covered"` // lines
	Lines   int `json:"lines"`
	// Missed are file:row of lines that no test evaluates.
	Missed []string `json:"missed,omitempty"`
}

// CoveredPercent is the percentage of covered lines; 100 if there are none.
func (c Coverage) CoveredPercent() float64 {
	if c.Lines == 0 {
		return 100
	}
	return 100 * float64(c.Covered) / float64(c.Lines)
}

// RefusedError says why a bundle may not become active.
type RefusedError struct {
	Bundle string
	Stage  Stage
	// LimitedIn is the stage that ran out of memory or time, where Stage is Limits.
	LimitedIn Stage
	Problems  module.Problems
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("bundle %s is refused (%s):\n%v", e.Bundle, e.Stage, e.Problems)
}

// Unwrap returns the problems.
func (e *RefusedError) Unwrap() error { return e.Problems }

// Gate checks bundles before they are admitted.
type Gate struct {
	builtin  *bundle.Bundle
	runner   Runner
	time     time.Duration
	coverage bool
}

// Option changes a gate.
type Option func(*Gate)

// WithRunner sets the Runner; this process runs the stages if unset.
func WithRunner(r Runner) Option { return func(g *Gate) { g.runner = r } }

// WithTime sets how long all stages together may take.
func WithTime(d time.Duration) Option { return func(g *Gate) { g.time = d } }

// WithCoverage measures the coverage of tests, which makes them slower.
func WithCoverage() Option { return func(g *Gate) { g.coverage = true } }

// New makes a gate in front of the built-in bundle.
func New(builtin *bundle.Bundle, opts ...Option) *Gate {
	g := &Gate{builtin: builtin, runner: InProcess{}, time: time.Minute}
	for _, o := range opts {
		o(g)
	}
	return g
}

// AdmitBundle checks a bundle that would be added to the active ones, or would replace its earlier
// revision. The error is a *RefusedError if the bundle is the cause. Records are recent decisions, the
// newest first, of which a bounded sample is made again; there may be none.
func (g *Gate) AdmitBundle(ctx context.Context, b *bundle.Bundle, active bundle.Set, records []decision.Record) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, g.time)
	defer cancel()
	job := Job{Builtin: sourceOf(g.builtin), Bundle: sourceOf(b), Coverage: g.coverage}
	for _, a := range active {
		if !replacesActive(b, a) {
			job.Active = append(job.Active, sourceOf(a))
		}
	}
	var err error
	if job.Records, err = encodeSample(records); err != nil {
		return Report{}, fmt.Errorf("admitting bundle %s: %w", b.Name, err)
	}
	return g.runJob(ctx, job, b)
}

// CheckFiles runs the stages that depend on the files of a bundle alone, which are those up to Types: no other bundle takes part,
// no test of the bundle is run, and no recent decision is made again. AdmitBundle refuses each bundle that CheckFiles refuses.
// The errors are those of AdmitBundle.
func (g *Gate) CheckFiles(ctx context.Context, b *bundle.Bundle) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, g.time)
	defer cancel()
	return g.runJob(ctx, Job{Builtin: sourceOf(g.builtin), Bundle: sourceOf(b), Last: Types}, b)
}

func (g *Gate) runJob(ctx context.Context, job Job, b *bundle.Bundle) (Report, error) {
	report, err := g.runner.RunJob(ctx, job)
	if err != nil {
		return report, fmt.Errorf("admitting bundle %s: %w", b.Name, err)
	}
	if report.Refused != "" {
		return report, &RefusedError{Bundle: b.Name, Stage: report.Refused, LimitedIn: report.LimitedIn, Problems: report.Problems}
	}
	return report, nil
}

// replacesActive reports whether a bundle would replace an active one. A canary does not replace the
// bundle that decides elsewhere; a bundle that decides everywhere replaces its canary.
func replacesActive(b, active *bundle.Bundle) bool {
	return active.Name == b.Name && active.Namespace == b.Namespace && (b.Canary == nil || active.Canary != nil)
}

// Job is the work of a gate, in the form that another process receives.
type Job struct {
	Builtin  Source   `json:"builtin"`
	Active   []Source `json:"active,omitempty"`
	Bundle   Source   `json:"bundle"`
	Coverage bool     `json:"coverage,omitempty"`
	// Last is the stage that ends the check; all stages are run if it is empty.
	Last Stage `json:"last,omitempty"`
	// Records are lines of JSON. They are sent after the job to another process, so that it has only one of them in memory at
	// a time.
	Records [][]byte `json:"-"`
}

// Source is a bundle before it is parsed.
type Source struct {
	Kind      bundle.Kind       `json:"kind"`
	Namespace string            `json:"namespace,omitempty"`
	Canary    []string          `json:"canary"` // null is another than none
	Name      string            `json:"name"`
	Files     map[string]string `json:"files"`
}

func sourceOf(b *bundle.Bundle) Source { return Source{b.Kind, b.Namespace, b.Canary, b.Name, b.Files} }

func (s Source) parseBundle() (*bundle.Bundle, error) {
	var opts []bundle.Option
	switch s.Kind {
	case bundle.Builtin:
		opts = append(opts, bundle.AsBuiltin())
	case bundle.Tenant:
		opts = append(opts, bundle.AsTenant(s.Namespace))
	}
	if s.Canary != nil {
		opts = append(opts, bundle.AsCanary(s.Canary...))
	}
	return bundle.FromFiles(s.Name, s.Files, opts...)
}
