// SPDX-License-Identifier: Apache-2.0

package cases_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/cases"
)

const policy = `package rollout

# METADATA
# labels:
#   id: rollout.plan
plan := {"limit": input.update, "maxUnavailable": 1, "holds": [h | some p; some h in data.extend.rollout[p].hold], "scatter": []} if input.update >= 0
`

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		yaml string
		want []string // problems of the only case, or the error of reading
	}{
		"a part of the answer": {`cases: [{name: a, point: rollout/plan, input: {update: 3}, want: {limit: 3}}]`, nil},
		"defaults below the input": {`
defaults: {input: {update: 3, workload: {name: web, labels: {a: b}}}}
cases: [{name: a, point: rollout/plan, input: {workload: {labels: {c: d}}}, want: {limit: 3, holds: []}, wantRules: [rollout.plan]}]`, nil},
		"a bundle of a user": {`
cases:
- name: a
  point: rollout/plan
  bundles: {a.rego: "package extend.rollout.a\nhold contains {\"reason\": \"R\", \"message\": \"m\"}"}
  want: {holds: [{reason: R, message: m, rule: rollout}]}`, nil},
		"another outcome":                 {`cases: [{name: a, point: rollout/plan, input: {update: -1}, wantOutcome: Undefined, want: {limit: 0}}]`, nil},
		"a number that is wrong":          {`cases: [{name: a, point: rollout/plan, input: {update: 3}, want: {limit: 4, maxUnavailable: 2}}]`, []string{"limit is 3, want 4", "maxUnavailable is 1, want 2"}},
		"a list that is longer":           {`cases: [{name: a, point: rollout/plan, want: {holds: [{reason: R}]}}]`, []string{"holds is [], want ["}},
		"an outcome not wanted":           {`cases: [{name: a, point: rollout/plan, input: {update: -1}, want: {}}]`, []string{"the outcome is Undefined, want Decided"}},
		"a rule without a part":           {`cases: [{name: a, point: rollout/plan, want: {}, wantRules: [x]}]`, []string{"the rule x took no part"}},
		"a field left out for it is zero": {`cases: [{name: a, point: protection/budget, want: {record: "", take: false, exempt: true, recrd: ""}}]`, []string{"exempt is missing, want true", `recrd is missing, want ""`}},
		"a field not there":               {`cases: [{name: a, point: rollout/plan, want: {limits: 4}}]`, []string{"limits is missing, want 4"}},
		"a point not there":               {`cases: [{name: a, point: rollout/plann, want: {}}]`, []string{"there is no decision point rollout/plann"}},
		"a misspelt fact":                 {`cases: [{name: a, point: rollout/plan, input: {updat: 1}, want: {}}]`, []string{`unknown field "updat"`}},
		"a bundle that is wrong":          {`cases: [{name: a, point: rollout/plan, bundles: {a.rego: "nope"}, want: {}}]`, []string{"a.rego:1:1:"}},
		"a field no case has":             {`cases: [{name: a, point: rollout/plan, wants: {}}]`, []string{`unknown field "wants"`}},
		"no name":                         {"cases:\n- {name: a, point: rollout/plan}\n- {point: rollout/plan, want: {}}", []string{"cases/x.yaml:3:3: case 2 needs a name"}},
		"no YAML":                         {`cases: [`, []string{"cases/x.yaml:1:1:"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := engine.New(fstest.MapFS{
				"rollout/plan.rego":      {Data: []byte(policy)},
				"protection/budget.rego": {Data: []byte("package protection\nbudget := {\"allow\": true, \"reasons\": [{\"reason\": \"R\", \"message\": \"m\"}]}")},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			files, err := cases.Read(fstest.MapFS{"cases/x.yaml": {Data: []byte(tc.yaml)}, "other/y.yaml": {Data: []byte("nope: 1")}})
			if err != nil {
				if len(tc.want) == 0 || !strings.Contains(err.Error(), tc.want[0]) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
				return
			}
			results := cases.RunFile(context.Background(), e, nil, files[0])
			if len(results) != 1 || len(results[0].Problems) != len(tc.want) {
				t.Fatalf("got %+v, want %q", results, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(results[0].Problems[i], want) {
					t.Errorf("got %s, want %s", results[0].Problems[i], want)
				}
			}
		})
	}
}

func TestTheBuiltinPoliciesPassTheirCases(t *testing.T) {
	folder := os.DirFS("../../policies")
	e, err := engine.New(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	files, err := cases.Read(folder)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Path, "examples/") {
			continue // those are of the examples beside
		}
		for _, r := range cases.RunFile(context.Background(), e, nil, f) {
			if !r.HasPassed() {
				t.Errorf("%s: %s: %v", r.File, r.Name, r.Problems)
			}
		}
	}
}
