// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/proptest"
)

// orders is in how many orders modules and bundles are read.
const orders = 3

// TestDecisionsDoNotDependOnAnyOrder makes every decision of the cases again and
// again: with the keys of objects and lists that are sets in other orders, and
// with modules and bundles that were read in other orders. The answer is the same,
// byte for byte. REGATTA_SHUFFLES is how often each is made.
func TestDecisionsDoNotDependOnAnyOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes tens of thousands of decisions")
	}
	times := proptest.Often(30)
	if proptest.Race { // nothing goes on at a time here but compiling
		times = 2 * orders
	}
	if n, err := strconv.Atoi(os.Getenv("REGATTA_SHUFFLES")); err == nil {
		times = n
	}
	var engines []*engine.Engine
	for i := range orders {
		e, err := engine.FromBundle(renamed(t, "builtin", builtinFiles(t), i, bundle.AsBuiltin()))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		engines = append(engines, e)
	}
	files := caseFiles(t)
	start := time.Now()
	var made, asked atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for _, file := range files {
			var last map[string]string
			var snapshots []*engine.Snapshot
			for i, r := range cases.RunFile(t.Context(), engines[0], nil, file) {
				c := file.Cases[i]
				if snapshots == nil || !maps.Equal(last, c.Bundles) { // most cases of a file have those of the case before
					last, snapshots = c.Bundles, make([]*engine.Snapshot, orders)
					for order, e := range engines {
						snapshots[order] = compiled(t, e, c.Bundles, order)
					}
				}
				on := snapshots
				t.Run(file.Path+"/"+c.Name, func(t *testing.T) {
					t.Parallel()
					asked.Add(1)
					made.Add(int64(again(t, engines, on, r.Record, times)))
				})
			}
		}
	})
	t.Logf("%d decisions were made %d times in %s", asked.Load(), made.Load(), time.Since(start).Round(time.Millisecond))
}

// again makes a decision of a case many times.
func again(t *testing.T, engines []*engine.Engine, on []*engine.Snapshot, rec decision.Record, times int) (made int) {
	p, ok := catalog.FindPoint(rec.Point)
	if !ok {
		t.Fatalf("there is no point %s", rec.Point)
	}
	p.Budget = time.Minute
	check := p.Check
	p.Check = func(_, out any) error { return check(rec.Input, out) } // it is asked as terms
	p.Undecided = func(any, bool) any { return nil }
	input, err := engines[0].Codec().Encode(rec.Input)
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for n := range times {
		random := rand.New(rand.NewPCG(uint64(n), 7))
		s := &shuffled{random: random}
		asked := s.value(input, "")
		out, now := engine.DecideOn(t.Context(), engines[n%orders], on[n%orders], p, rec.Subject, asked)
		text, err := json.Marshal(s.back(t, out))
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s %s", now.Outcome, text)
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("asked for the %d. time it is\n%s %s\nand was\n%s\nasked %v", n+1, got, now.Error, want, asked)
		}
		made++
	}
	return made
}

// compiled has the bundles of a case, each package as a bundle of its own, in
// another order each.
func compiled(t *testing.T, e *engine.Engine, files map[string]string, order int) *engine.Snapshot {
	t.Helper()
	if len(files) == 0 {
		return e.BaseSnapshot()
	}
	whole, err := bundle.FromFiles("case", files)
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]map[string]string{}
	for name, text := range whole.Files {
		pkg := "" // data and the like
		if m := whole.Modules[name]; m != nil {
			pkg = m.Package.Path.String()
		}
		if packages[pkg] == nil {
			packages[pkg] = map[string]string{}
		}
		packages[pkg][name] = text
	}
	var set bundle.Set
	for i, pkg := range slices.Sorted(maps.Keys(packages)) {
		set = append(set, renamed(t, fmt.Sprint("case", i), packages[pkg], order))
	}
	random := rand.New(rand.NewPCG(uint64(order), 7))
	random.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
	s, err := e.CompileBundles(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func builtinFiles(t *testing.T) map[string]string {
	t.Helper()
	b, err := bundle.ReadBuiltin(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	return b.Files
}

// renamed is a bundle whose modules have other names, and so another order. Data
// stays, as its folder says what it is.
func renamed(t *testing.T, name string, files map[string]string, order int, opts ...bundle.Option) *bundle.Bundle {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(order), 7))
	out := map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		other := file
		if order > 0 && strings.HasSuffix(file, ".rego") {
			other = fmt.Sprintf("%06d-%s", random.IntN(1_000_000), strings.ReplaceAll(file, "/", "-"))
		}
		out[other] = files[file]
	}
	b, err := bundle.FromFiles(name, out, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unordered are lists in questions whose order means nothing. That of the changes
// to a template does: the first that is an obstacle gives the reason.
func unordered() []string { return []string{"groups", "matches"} }

// shuffled is a question in another order.
type shuffled struct {
	random *rand.Rand
	// pods is where each of the pods was, whose keys are in the order of the
	// question.
	pods []int
}

func (s *shuffled) value(v ast.Value, key string) ast.Value {
	switch v := v.(type) {
	case ast.Object:
		keys := slices.Clone(v.Keys())
		s.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		out := ast.NewObject()
		for _, k := range keys {
			name, _ := k.Value.(ast.String)
			out.Insert(k, ast.NewTerm(s.value(v.Get(k).Value, string(name))))
		}
		return out
	case *ast.Array:
		order := make([]int, v.Len())
		for i := range order {
			order[i] = i
		}
		if key == "pods" || slices.Contains(unordered(), key) {
			s.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		if key == "pods" {
			s.pods = order
		}
		terms := make([]*ast.Term, len(order))
		for to, from := range order {
			terms[to] = ast.NewTerm(s.value(v.Elem(from).Value, ""))
		}
		return ast.NewArray(terms...)
	}
	return v
}

// back puts the keys of pods in the order that the pods had.
func (s *shuffled) back(t *testing.T, answer any) any {
	t.Helper()
	restore := func(keys [][]float64) [][]float64 {
		if len(keys) != len(s.pods) {
			return keys
		}
		out := make([][]float64, len(keys))
		for i, k := range keys {
			out[s.pods[i]] = k
		}
		return out
	}
	switch out := answer.(type) {
	case rollout.RankOutput:
		out.Keys, out.Lead = restore(out.Keys), restore(out.Lead)
		return out
	case rollout.ScaleOutput:
		out.Keys, out.Then = restore(out.Keys), restore(out.Then)
		return out
	}
	return answer
}
