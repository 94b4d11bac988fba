// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/policies"
)

// TestAnswersThatDifferEachTimeAreDropped lets the new policies fail at chosen decisions.
func TestAnswersThatDifferEachTimeAreDropped(t *testing.T) {
	builtin, err := bundle.ReadBuiltin(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.FromBundle(builtin, engine.WithPoints())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	point, _ := catalog.FindPoint("rollout/plan")
	for name, tc := range map[string]struct {
		// fails says whether the new policies fail at the n-th decision about an input that has a label.
		fails    func(n int, labeled bool) bool
		want     bool
		smaller  bool // the label is gone
		unstable int
	}{
		"the answers are the same each time":            {fails: func(int, bool) bool { return true }, want: true, smaller: true},
		"the second answer is another one":              {fails: func(n int, _ bool) bool { return n == 1 }, unstable: 1},
		"that of the smaller input, at the second time": {fails: func(n int, labeled bool) bool { return labeled || n%2 == 1 }, want: true, unstable: 1},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := &side{engine: e}, &side{engine: e}
			decisions := map[bool]int{}
			s := &searcher{Question: Question{Mode: NeverFails}, before: before, after: after, point: point, report: &PointReport{}}
			s.replay = func(_ context.Context, _ *engine.Engine, _ *engine.Snapshot, r decision.Record, _ int) (decision.Record, error) {
				labeled := reflect.ValueOf(r.Input).FieldByName("Workload").FieldByName("Labels").Len() > 0
				decisions[labeled]++
				r.Outcome = decision.Decided
				if n := (decisions[labeled] + 1) / 2; decisions[labeled]%2 == 0 && tc.fails(n, labeled) {
					r.Outcome = decision.Failed
				}
				return r, nil
			}
			base := map[string]any{"workload": map[string]any{"labels": map[string]any{"a": "b"}}}
			found, _, err := s.tryWorld(t.Context(), newSpace("rollout/plan", point.In, base, nil, 2), world{})
			if err != nil || (found != nil) != tc.want || s.report.Unstable != tc.unstable {
				t.Fatalf("it is found: %v, want %v, and %d are dropped, want %d: %v", found != nil, tc.want, s.report.Unstable, tc.unstable, err)
			}
			if found != nil && reflect.DeepEqual(found.Input, any(base)) == tc.smaller {
				t.Errorf("the input is %v", found.Input)
			}
		})
	}
}

// TestWorldsAreTriedByTheirChanges compares the order with that of a sort, and ends with the context.
func TestWorldsAreTriedByTheirChanges(t *testing.T) {
	point, _ := catalog.FindPoint("rollout/plan")
	facts := map[string]*fact{}
	for _, steps := range [][]step{{{name: "update"}}, {{name: "restart"}}, {{name: "groups"}, {name: "zone"}, {each: true}, {name: "unavailable"}}} {
		f := &fact{path: factPath{steps: steps}, read: true}
		facts[f.path.String()] = f
	}
	sp := newSpace("rollout/plan", point.In, map[string]any{}, facts, 2)
	var want, got []world
	for w := range sp.enumerateWorlds(t.Context(), anyChanges) {
		want = append(want, slices.Clone(w))
	}
	slices.SortStableFunc(want, func(a, b world) int { return a.countChanges() - b.countChanges() })
	for changes := range len(sp.dims) + 1 {
		for w := range sp.enumerateWorlds(t.Context(), changes) {
			got = append(got, slices.Clone(w))
		}
	}
	if len(want) < 20 || !reflect.DeepEqual(got, want) {
		t.Errorf("the worlds are\n%v, want\n%v", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := sp.countWorlds(ctx, MaxWorlds); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d worlds are counted: %v", n, err)
	}
}
