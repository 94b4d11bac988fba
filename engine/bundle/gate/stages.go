// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/schema"
)

// runStages runs the stages up to the first that refuses, or to the last of the job.
//
// begin is called before each stage, with the stage and the report so far.
func runStages(ctx context.Context, job Job, records iter.Seq2[[]byte, error], begin func(Stage, Report)) (Report, error) {
	c := &checking{job: job, records: records}
	if err := c.parseBundles(); err != nil {
		return Report{}, err
	}
	defer c.closeEngine()
	for _, s := range []struct {
		stage Stage
		code  string // for problems that OPA has no code for
		run   func(context.Context) error
	}{
		{Packages, "contract_error", c.checkPackages}, {Compile, "compile_error", c.compileBundle}, {Schemas, "schema_error", c.checkSchemas},
		{Types, "output_error", c.checkTypes}, {Tests, "test_failed", c.runTests}, {Replay, "replay_error", c.replayRecords},
	} {
		begin(s.stage, c.report)
		start, used := time.Now(), processorTime()
		err := s.run(ctx)
		c.report.Stages = append(c.report.Stages, Took{s.stage, time.Since(start)})
		var found module.Problems
		switch {
		case errors.As(err, &found):
			c.report.Refused, c.report.Problems = s.stage, found.WithCode(s.code)
			return c.report, nil
		case ctx.Err() != nil, errors.As(err, new(engine.SlowError)), errors.Is(err, errLateRules):
			return timeoutReport(c.report, job.Bundle.Name, s.stage), nil
		case err != nil:
			return c.report, fmt.Errorf("stage %s: %w", s.stage, err)
		case s.stage == Compile && processorTime()-used > mostCompile:
			report := timeoutReport(c.report, job.Bundle.Name, s.stage)
			report.Problems[0].Message += fmt.Sprintf(": it may take %s of a processor", mostCompile)
			return report, nil
		case s.stage == job.Last:
			return c.report, nil
		}
	}
	return c.report, nil
}

// mostCompile is how much processor time compilation may take. A manager then compiles an accepted bundle within a minute, even
// with the chart's limit of a fifth of a processor. A manager leaves out a bundle that takes longer.
const mostCompile = 10 * time.Second

// limitError is the code of a problem of time or memory.
const limitError = "limit_error"

func timeoutReport(r Report, name string, s Stage) Report {
	r.Refused, r.LimitedIn = Limits, s
	r.Problems = module.Problems{{File: name, Row: 1, Col: 1, Code: limitError, Message: fmt.Sprintf("checking took too long, in stage %s", s)}}
	return r
}

type checking struct {
	job     Job
	builtin *bundle.Bundle
	bundle  *bundle.Bundle
	active  bundle.Set // including the bundle
	report  Report
	records iter.Seq2[[]byte, error]

	// The engine and snapshot that the bundle would be active in, set in the stage compile.
	engine   *engine.Engine
	snapshot *engine.Snapshot
}

func (c *checking) parseBundles() (err error) {
	if c.builtin, err = c.job.Builtin.parseBundle(); err != nil {
		return err
	}
	for _, s := range c.job.Active {
		b, err := s.parseBundle()
		if err != nil {
			return err
		}
		c.active = append(c.active, b)
	}
	if c.bundle, err = c.job.Bundle.parseBundle(); err != nil {
		return err
	}
	if c.bundle.Kind != bundle.Builtin {
		c.active = append(c.active, c.bundle)
	}
	return nil
}

func (c *checking) checkPackages(context.Context) error {
	if c.bundle.Kind == bundle.Builtin {
		return nil
	}
	if ps := c.bundle.CheckContract(); len(ps) > 0 {
		return ps
	}
	return nil
}

func (c *checking) compileBundle(ctx context.Context) (err error) {
	// The manager enforces how much memory bundles may take together.
	if c.engine, err = engine.FromBundle(c.builtin, engine.WithTenantBytes(math.MaxInt), engine.WithViewBytes(math.MaxInt)); err != nil {
		return err
	}
	c.snapshot, err = c.engine.CompileBundles(ctx, c.active)
	return err
}

func (c *checking) closeEngine() {
	if c.engine != nil {
		c.engine.Close()
	}
}

// checkSchemas compiles the modules about each domain once more, with the schema of the domain's
// facts, so that a reference to a fact that does not exist is a type error. The built-in modules of
// the domain are compiled with them, since packages may call their functions.
func (c *checking) checkSchemas(context.Context) error {
	var wrong module.Problems
	for _, domain := range domainsOf(c.bundle) {
		modules := map[string]*ast.Module{}
		for _, b := range []*bundle.Bundle{c.builtin, c.bundle} {
			for file, m := range b.Modules {
				if d := domainOf(m); d == domain || d == "lib" {
					modules[b.Name+"/"+file] = m
				}
			}
		}
		facts, err := schema.DomainInput(domain)
		if err != nil {
			continue // a domain without points has no schema
		}
		set := ast.NewSchemaSet()
		set.Put(ast.SchemaRootRef, facts)
		typed, err := module.Compile(modules, module.WithSchemas(set))
		var found module.Problems
		if errors.As(err, &found) {
			wrong = append(wrong, found...)
			continue
		}
		if err != nil {
			return err
		}
		if ps := findImpossibleRules(typed, c.bundle, domain); len(ps) > 0 {
			wrong = append(wrong, ps...)
			continue
		}
		if ps := checkAnswerTypes(typed, c.bundle, domain); len(ps) > 0 {
			c.report.Problems = append(c.report.Problems, ps...)
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// checkTypes reports answers of wrong types. If there are none, it reports wrong values.
func (c *checking) checkTypes(ctx context.Context) error {
	found := c.report.Problems
	c.report.Problems = nil
	if len(found) > 0 {
		return found
	}
	return c.findInvalidRules(ctx)
}

// domainOf is the domain that a module is about: its own or, in a user's bundle, the one that it
// extends or overrides.
func domainOf(m *ast.Module) string {
	parts := strings.Split(module.PackagePath(m), ".")
	if (parts[0] == "extend" || parts[0] == "override") && len(parts) > 1 {
		return parts[1]
	}
	return parts[0]
}

func domainsOf(b *bundle.Bundle) []string {
	seen := map[string]bool{}
	for _, m := range b.Modules {
		seen[domainOf(m)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// maxDifferences is how many differences are reported; all are counted.
const maxDifferences = 100

// replayTime bounds the stage replay. The bundle does not determine which decisions there are, so it is not refused if the time is
// over. A single decision that is late has the outcome TimedOut.
const replayTime = 20 * time.Second

// replayRecords makes decisions again, one after the other. A different answer is allowed, since a new
// bundle may change answers. A missing answer, where the record has one, refuses the bundle.
func (c *checking) replayRecords(ctx context.Context) error {
	over := time.Now().Add(replayTime)
	var wrong module.Problems
	for line, err := range c.records {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if time.Now().After(over) {
			break
		}
		read, err := record.Read(bytes.NewReader(line))
		if err != nil {
			return err
		}
		if len(read) == 0 {
			continue // a record of an unknown point, or of a shadow
		}
		r := read[0]
		tries := engine.Strikes
		if len(wrong) > 0 {
			tries = 1 // the bundle is refused anyway
		}
		d, err := compare.ReplayAndDiff(ctx, c.engine, c.snapshot, r, tries)
		if err != nil {
			return err
		}
		c.report.Replayed++
		if d == nil {
			continue
		}
		if len(c.report.Differences) < maxDifferences {
			c.report.Differences = append(c.report.Differences, *d)
		}
		if d.Then.Outcome == decision.Decided && d.Now.Outcome != decision.Decided && len(wrong) < 10 {
			wrong = append(wrong, module.Problem{File: c.bundle.Name, Row: 1, Col: 1, Message: fmt.Sprintf(
				"%s of %s %s/%s, which was decided, would be without a decision (%s): %s",
				r.Point, r.Subject.Kind, r.Subject.Namespace, r.Subject.Name, d.Now.Outcome, d.Now.Error)})
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}
