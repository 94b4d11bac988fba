// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/lint"
)

const documented = `# METADATA
# title: T
# description: D
# labels:
#   id: a.id
`

func TestRules(t *testing.T) {
	rank := func(s string) map[string]string {
		return map[string]string{
			"a.rego":      "package extend.rollout.a\n\nimport future.keywords.not\n\n" + documented + s,
			"a_test.rego": "package extend.rollout.a_test\n\ntest_a if data.extend.rollout.a.rank == {}",
		}
	}
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string // how the findings begin, in order
	}{
		"a rank as it should be":            {files: rank(`rank := {pod.name: 1 | some pod in input.pods; pod.labels.tier == "gold"; not pod.ready}`)},
		"a lookup for each pod is fine":     {files: rank("places := {\"gold\": 2}\n\n" + documented + "rank := {pod.name: places[pod.labels.tier] | some pod in input.pods}"), want: nil},
		"text once, outside of the loop":    {files: rank(`rank := {pod.name: 1 | tier := sprintf("%s", ["gold"]); some pod in input.pods; pod.labels.tier == tier}`)},
		"sprintf for each pod":              {files: rank(`rank := {pod.name: 1 | some pod in input.pods; pod.node == sprintf("n-%s", [pod.zone])}`), want: []string{"a.rego:10:60: pod-text: sprintf is evaluated for each pod: compare facts"}},
		"sprintf for each pod by an index":  {files: rank(`rank := {input.pods[i].name: 1 | input.pods[i].node == sprintf("n-%s", ["a"])}`), want: []string{"a.rego:10:56: pod-text: sprintf"}},
		"arithmetic in the value of a rank": {files: rank(`rank := {pod.name: n | some pod in input.pods; n := pod.restarts * 2}`), want: []string{"a.rego:10:53: pod-arithmetic: arithmetic is done for each pod"}},
		"arithmetic in a rank with else":    {files: rank("rank := {} if input.update > 5\n\nelse := {pod.name: 1 | some pod in input.pods; pod.restarts + 1 > 3}"), want: []string{"a.rego:12:48: pod-arithmetic:"}},
		"a function for each pod":           {files: rank("rank := {pod.name: 1 | some pod in input.pods; gold(pod)}\n\ngold(pod) if pod.labels.tier == \"gold\""), want: []string{"a.rego:10:48: pod-function: the function gold is called for each pod"}},
		"pods by another name":              {files: rank("rank := ranked if {\n\tall := input.pods\n\tranked := {pod.name: n | some pod in all; n := pod.restarts + 1}\n}"), want: []string{"a.rego:12:49: pod-arithmetic"}},
		"pods that are imported":            {files: map[string]string{"a.rego": "package extend.rollout.a\n\nimport input.pods\n\n" + documented + "rank := {pod.name: n | some pod in pods; n := 0 - pod.restarts}", "a_test.rego": rank("")["a_test.rego"]}, want: []string{"a.rego:10:47: pod-arithmetic"}},
		"a partial object over pods":        {files: rank(`rank[pod.name] := 1 if some pod in input.pods`), want: []string{"a.rego:10:1: pod-object: write one comprehension, rank := {pod.name: 1 | some pod in input.pods; ...}"}},
		"a partial object over zones":       {files: rank("rank := {}\n\nfirst[zone] := 1 if some zone, _ in input.groups.zone")},
		"each pod with each pod":            {files: rank(`rank := {a.name: 1 | some a in input.pods; some b in input.pods; a.node == b.node}`), want: []string{"a.rego:10:44: pods-by-pods: pods are gone through for each pod"}},
		"each pod with each pod, nested":    {files: rank(`rank := {a.name: 1 | some a in input.pods; count([b | some b in input.pods; b.node == a.node]) > 1}`), want: []string{"a.rego:10:55: pods-by-pods:"}},
		"each pod with every pod":           {files: rank("rank := {a.name: 1 |\n\tsome a in input.pods\n\tevery b in input.pods { b.zone == a.zone }\n}"), want: []string{"a.rego:12:2: pods-by-pods:"}},
		"each pod with no pod":              {files: rank("rank := {a.name: 1 |\n\tsome a in input.pods\n\tnot input.pods[_].zone == a.zone\n}"), want: []string{"a.rego:12:6: pods-by-pods:"}},
		"pods twice, one after the other":   {files: rank("rank := {a.name: 1 | some a in input.pods; a.node in full} if true\n\nfull := {b.node | some b in input.pods}")},
		"walk":                              {files: rank("rank := {} if {\n\twalk(input, [_, v])\n\tv == 1\n}"), want: []string{"a.rego:11:2: no-walk: walk is not allowed"}},

		"a negation without the import": {
			files: map[string]string{"a.rego": "package extend.rollout.a\n\n" + documented + "hold contains {} if not input.x", "a_test.rego": "package extend.rollout.a_test\n\ntest_a if not data.extend.rollout.a.hold[1]"},
			want:  []string{"a.rego:8:21: not-import: write `import future.keywords.not`", "a_test.rego:3:11: not-import:"},
		},
		"no metadata": {
			files: map[string]string{"a.rego": "package extend.rollout.a\n\nhold contains {} if input.x", "a_test.rego": rank("")["a_test.rego"]},
			want:  []string{"a.rego:3:1: missing-metadata: write a comment `# METADATA` with title, description, labels.id above hold"},
		},
		"metadata of the package, with an id": {
			files: map[string]string{"a.rego": documented[:11] + "# scope: package\n" + documented[11:] + "package extend.rollout.a\n\nhold contains {} if input.x", "a_test.rego": rank("")["a_test.rego"]},
		},
		"metadata of the package, without one": {
			files: map[string]string{"a.rego": "# METADATA\n# title: T\n# description: D\npackage extend.rollout.a\n\nhold contains {} if input.x", "a_test.rego": rank("")["a_test.rego"]},
			want:  []string{"a.rego:6:1: missing-metadata: write a comment `# METADATA` with labels.id above hold"},
		},
		"one rule of two without metadata": {
			files: rank("hold contains {} if input.x\n\nhold contains {} if input.y"),
			want:  []string{"a.rego:12:1: missing-metadata:"},
		},
		"a decision that is replaced without metadata": {
			files: map[string]string{"a.rego": "package override.rollout\n\ndefault plan := {}\n\nplan := {} if input.x", "a_test.rego": "package override.rollout_test\n\ntest_a if data.override.rollout.plan"},
			want:  []string{"a.rego:5:1: missing-metadata:"},
		},
		"guards and settings are shown by nobody": {files: map[string]string{"a.rego": "package extend.protection.a\n\nguard contains {}\n\nsettings := {}"}},
		"no test": {
			files: map[string]string{"x/a.rego": "package extend.rollout.a\n\n" + documented + "hold contains {} if input.x", "x/b_test.rego": "package extend.rollout.b_test\n\ntest_a if true"},
			want:  []string{"x/a.rego:1:1: missing-tests: write a test in x/a_test.rego"},
		},
		"a test that asks the point": {
			files: map[string]string{"a.rego": "package extend.rollout.a\n\n" + documented + "hold contains {} if input.x", "b_test.rego": "package extend.rollout.b_test\n\nimport data.rollout\n\ntest_a if rollout.plan"},
		},
		"a package for others needs none": {files: map[string]string{"a.rego": "package extend.rollout.calendar\n\nclosed := true"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := bundle.FromFiles("own", tc.files)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range lint.CheckBundle(b) {
				got = append(got, f.SourcePosition()+": "+f.Rule+": "+f.Message)
			}
			if len(got) != len(tc.want) {
				t.Fatalf("got\n%s\nwant %q", strings.Join(got, "\n"), tc.want)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got  %s\nwant %s", got[i], want)
				}
			}
		})
	}
}

// TestOurExamplesHaveNoFindings holds what people start from to the rules.
func TestOurExamplesHaveNoFindings(t *testing.T) {
	folders, err := filepath.Glob("../../../policies/examples/*/*_test.rego")
	if err != nil || len(folders) < 5 {
		t.Fatalf("the examples are %v, %v", folders, err)
	}
	for _, test := range folders {
		dir := filepath.Dir(test)
		b, err := bundle.FromFS(filepath.Base(dir), os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range lint.CheckBundle(b) {
			t.Errorf("%s/%s: %s: %s", dir, f.SourcePosition(), f.Rule, f.Message)
		}
	}
}
