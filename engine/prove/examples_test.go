// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/engine/prove"
	"github.com/regatta-sh/regatta/policies"
)

const folder = "../../policies/examples"

// rig makes questions that share an engine.
type rig struct {
	builtin *bundle.Bundle
	engine  *engine.Engine
	cases   []cases.File
}

func newRig(t *testing.T) *rig {
	t.Helper()
	builtin, err := bundle.ReadBuiltin(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.FromBundle(builtin, engine.WithPatience(20), engine.WithPoints()) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	all, err := cases.Read(os.DirFS("../../policies/cases/.."))
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(f cases.File) bool { return strings.HasPrefix(f.Path, "examples/") })
	return &rig{builtin, e, all}
}

func (r *rig) question(mode prove.Mode, old, now *bundle.Bundle) prove.Question {
	q := prove.Question{
		Mode: mode, New: prove.Side{Builtin: r.builtin, Set: bundle.Set{now}}, Engine: r.engine, Cases: r.cases,
		Limits: prove.Limits{Worlds: 3000, Elements: 2, Timeout: 10 * time.Minute, Seed: 1},
	}
	if old != nil {
		q.Old = prove.Side{Builtin: r.builtin, Set: bundle.Set{old}}
	}
	return q
}

// example reads an example, with its cases.
func example(t *testing.T, name string) (*bundle.Bundle, []cases.File) {
	t.Helper()
	fsys := os.DirFS(filepath.Join(folder, name))
	b, err := bundle.FromFS(name, fsys)
	if err != nil {
		t.Fatal(err)
	}
	own, err := cases.Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return b, own
}

func exampleNames(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*", "bundle.yaml"))
	if err != nil || len(found) < 30 {
		t.Fatalf("found %d examples: %v", len(found), err)
	}
	var out []string
	for _, f := range found {
		out = append(out, filepath.Base(filepath.Dir(f)))
	}
	return out
}

// rewritten is a bundle with one change to its modules, and what was changed.
type rewritten struct {
	what   string
	bundle *bundle.Bundle
	// mode is the one that must find it.
	mode prove.Mode
}

// withRules copies a bundle, and lets change rewrite its rules until it says what it did.
func withRules(t *testing.T, b *bundle.Bundle, change func(m *ast.Module, r *ast.Rule) string) *rewritten {
	t.Helper()
	for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
		m, err := module.Parse(file, b.Files[file])
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range m.Rules {
			what := change(m, r)
			if what == "" {
				continue
			}
			text, err := format.AstWithOpts(m, format.Opts{RegoVersion: ast.RegoV1})
			if err != nil {
				t.Fatal(err)
			}
			files := maps.Clone(b.Files)
			files[file] = string(text)
			maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "_test.rego") })
			out, err := bundle.FromFiles(b.Name, files)
			if err != nil {
				t.Fatalf("%s: %v\n%s", what, err, text)
			}
			return &rewritten{what, out, prove.Equal}
		}
	}
	return nil
}

// clauses are the rules that a bundle decides with.
var clauses = []string{"hold", "deny", "skip", "rank", "rows", "settings"}

// withoutClause makes the n-th clause of a bundle one that is never true.
func withoutClause(t *testing.T, b *bundle.Bundle, n int) *rewritten {
	looser := false
	out := withRules(t, b, func(_ *ast.Module, r *ast.Rule) string {
		if !slices.Contains(clauses, r.Head.Ref()[0].String()) || r.Default {
			return ""
		}
		if n--; n >= 0 {
			return ""
		}
		r.Body = append(ast.NewBody(ast.NewExpr(ast.BooleanTerm(false))), r.Body...)
		if name := r.Head.Ref()[0].String(); name == "hold" || name == "deny" {
			looser = true
		}
		return "without " + r.Head.Ref().String() + " of " + r.Location.String()
	})
	if out != nil && looser {
		out.mode = prove.NeverLooser
	}
	return out
}

var flips = map[string]string{"equal": "neq", "neq": "equal", "lt": "gte", "lte": "gt", "gt": "lte", "gte": "lt"}

// withFlip negates the n-th comparison of a bundle.
func withFlip(t *testing.T, b *bundle.Bundle, n int) *rewritten {
	return withRules(t, b, func(_ *ast.Module, r *ast.Rule) string {
		what := ""
		ast.WalkExprs(r, func(x *ast.Expr) bool {
			terms, ok := x.Terms.([]*ast.Term)
			if !ok || what != "" {
				return what != ""
			}
			to, ok := flips[terms[0].String()]
			if !ok {
				return false
			}
			if n--; n >= 0 {
				return false
			}
			what = "flipped " + x.String() + " of " + x.Location.String()
			terms[0] = ast.NewTerm(ast.BuiltinMap[to].Ref())
			return true
		})
		return what
	})
}

// tightens are examples without a clause of which the answers differ and are not looser, and why.
var tightens = map[string]string{
	"drain-a-zone": "a denial of a subset moves its pods to others, so without it fewer are moved",
	"half-in-spot": "likewise; it could let more pods move only where they are elsewhere, which no rule of it reads, so that it does not vary",
}

func TestExamples(t *testing.T) {
	r := newRig(t)
	for _, name := range exampleNames(t) {
		t.Run(name, func(t *testing.T) {
			b, own := example(t, name)
			find := func(mode prove.Mode, now *bundle.Bundle, worlds int) *prove.Report {
				q := r.question(mode, b, now)
				q.Cases = append(own, q.Cases...)
				q.Limits.Worlds = worlds
				start := time.Now()
				report, err := prove.FindCounterexample(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, p := range report.Points {
					n += p.Tried
				}
				t.Logf("%s: %d worlds in %s, %.0f/s", mode, n, time.Since(start), float64(n)/report.Took.Seconds())
				return report
			}
			if report := find(prove.Equal, b, 100); report.Found != nil || len(report.Points) == 0 {
				t.Errorf("the same bundle: %+v", report)
			}
			for _, change := range []*rewritten{withoutClause(t, b, 0), withFlip(t, b, 0)} {
				if change == nil {
					continue
				}
				if tightens[name] != "" && change.mode == prove.NeverLooser {
					if report := find(prove.NeverLooser, change.bundle, 300); report.Found != nil {
						t.Errorf("%s: it is looser: %+v", change.what, report.Found)
					}
					change.mode = prove.Equal
				}
				if report := find(change.mode, change.bundle, 3000); report.Found == nil {
					t.Errorf("%s: no difference is found in %+v", change.what, report.Points)
				}
			}
		})
	}
}
