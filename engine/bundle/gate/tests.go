// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/module"
)

// testTime is how long one test may take.
const testTime = 5 * time.Second

// runTests runs the bundle's own tests, together with the built-in policies and with the settings of
// the engine: errors of built-in functions are errors.
func (c *checking) runTests(ctx context.Context) error {
	if len(c.bundle.Tests) == 0 {
		return nil
	}
	modules, own := map[string]*ast.Module{}, map[string]*ast.Module{}
	if c.bundle.Kind != bundle.Builtin {
		for file, m := range c.builtin.Modules {
			modules["builtin:"+file] = m
		}
	}
	for file, m := range c.bundle.Modules {
		modules[file], own[file] = m, m
	}
	maps.Copy(modules, c.bundle.Tests)
	store := inmem.NewFromObject(c.bundle.Data)
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return fmt.Errorf("opening the data: %w", err)
	}
	defer store.Abort(ctx, txn)
	runner := tester.NewRunner().
		SetCompiler(module.NewCompiler(module.WithPrint())).SetModules(modules).SetStore(store).
		RaiseBuiltinErrors(true).SetTimeout(testTime)
	tracer := cover.New()
	if c.job.Coverage {
		// Only the coverage of evaluated lines is needed; each pass that explains why a line was not evaluated
		// would cost as much again.
		runner = runner.SetCoverageRuns(nil).SetCoverageQueryTracer(tracer)
	}
	results, err := runner.RunTests(ctx, txn)
	if err != nil {
		return module.FromErrors(err)
	}
	var wrong module.Problems
	for r := range results {
		if p, ok := c.addTestResult(r); !ok {
			wrong = append(wrong, p)
		}
	}
	slices.SortFunc(c.report.Tests, func(a, b Test) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(wrong, func(a, b module.Problem) int { return strings.Compare(a.String(), b.String()) })
	if c.job.Coverage {
		c.report.Coverage = measureCoverage(tracer, own)
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// addTestResult reports one test.
func (c *checking) addTestResult(r *tester.Result) (module.Problem, bool) {
	name := strings.TrimPrefix(r.Package, "data.") + "." + r.Name
	t := Test{Name: name, Place: module.ProblemAt(r.Location, "").SourcePosition(), Passed: r.Pass(), Skipped: r.Skip, Duration: r.Duration}
	var failed []string
	for path, sub := range r.SubResults.Iter {
		if sub.Fail && len(sub.SubResults) == 0 {
			failed = append(failed, strings.Join(path, "/"))
		}
	}
	switch {
	case r.Error != nil:
		t.Message = r.Error.Error()
	case len(failed) > 0:
		t.Message = "failed for " + strings.Join(failed, ", ")
	case r.Fail:
		t.Message = "failed"
	}
	if out := strings.TrimSpace(string(r.Output)); out != "" && t.Message != "" {
		t.Message += "; it printed " + out
	}
	c.report.Tests = append(c.report.Tests, t)
	return module.ProblemAt(r.Location, "%s %s", name, t.Message), t.Passed || t.Skipped
}

func measureCoverage(tracer *cover.Cover, own map[string]*ast.Module) *Coverage {
	out := &Coverage{}
	report := tracer.Report(own)
	for _, file := range slices.Sorted(maps.Keys(own)) {
		f := report.Files[file]
		if f == nil {
			continue
		}
		out.Covered += f.CoveredLines
		out.Lines += f.CoveredLines + f.NotCoveredLines
		for _, r := range f.NotCovered {
			out.Missed = append(out.Missed, fmt.Sprintf("%s:%d", file, r.Start.Row))
		}
	}
	out.Missed = slices.Compact(out.Missed) // a line may have several expressions
	return out
}
