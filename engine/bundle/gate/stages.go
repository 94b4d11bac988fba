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

// runStages goes through the stages up to the first that refuses.
//
// begin is called with each stage before it runs, and what is known until then.
func runStages(ctx context.Context, job Job, records iter.Seq2[[]byte, error], begin func(Stage, Report)) (Report, error) {
	c := &checking{job: job, records: records}
	if err := c.parseBundles(); err != nil {
		return Report{}, err
	}
	defer c.closeEngine()
	for _, s := range []struct {
		stage Stage
		code  string // of problems that OPA has no code for
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
		case ctx.Err() != nil, errors.As(err, new(engine.SlowError)):
			return timeoutReport(c.report, job.Bundle.Name, s.stage), nil
		case err != nil:
			return c.report, fmt.Errorf("stage %s: %w", s.stage, err)
		case s.stage == Compile && processorTime()-used > mostCompile:
			report := timeoutReport(c.report, job.Bundle.Name, s.stage)
			report.Problems[0].Message += fmt.Sprintf(": it may take %s of a processor", mostCompile)
			return report, nil
		}
	}
	return c.report, nil
}

// mostCompile is how long compiling may take of a processor. A manager compiles what is let in within a minute then, though the
// chart's limit leaves it a fifth of a processor, and what takes longer is left out there.
const mostCompile = 10 * time.Second

// limitError is the code of what took too much time or memory.
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
	active  bundle.Set // with the bundle
	report  Report
	records iter.Seq2[[]byte, error]

	// What the bundle would be active in, from the stage compile on.
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
	// What bundles may take together is for the manager to say, which has its own memory.
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

// checkSchemas compiles what the bundle says about each domain once more, with the
// facts of the domain known, so that a reference to one that does not exist is
// a type error. The built-in modules of the domain are compiled along because
// packages may call their functions.
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
			continue // a domain that has no points yet: nothing is known
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

// checkTypes reports what schemas found out about answers, or else what their values
// have that types do not tell.
func (c *checking) checkTypes(ctx context.Context) error {
	found := c.report.Problems
	c.report.Problems = nil
	if len(found) == 0 {
		found = c.findInvalidRules(ctx)
	}
	if len(found) > 0 {
		return found
	}
	return nil
}

// domainOf is the domain that a module is about: its own or, in a user's, that
// which it extends or overrides.
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

// replayTime bounds the stage replay. Which decisions there are is not the bundle's doing, so that the bundle is not refused where
// the time is over: a single decision that comes late is told by its outcome.
const replayTime = 20 * time.Second

// replayRecords makes decisions again, one after the other. Other answers are what a new bundle is for; no
// answer where there was one is not.
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
			continue // of a point that is not known, or of a shadow
		}
		r := read[0]
		tries := engine.Strikes
		if len(wrong) > 0 {
			tries = 1 // it is refused by now
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
