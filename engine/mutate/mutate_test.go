// SPDX-License-Identifier: Apache-2.0

package mutate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/mutate"
)

func newBundle(t *testing.T, rules string) *bundle.Bundle {
	t.Helper()
	b, err := bundle.FromFiles("a", map[string]string{
		"a.rego":      "package extend.rollout.a\n" + rules,
		"a_test.rego": "package extend.rollout.a_test\ntest_it if data.extend.rollout.a.x == 1\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestListMutants(t *testing.T) {
	for name, tc := range map[string]struct {
		rules string
		want  []string
	}{
		"a rule with a condition": {
			"hold contains {\"reason\": \"R\"} if input.update > 5\n",
			[]string{
				"2:1 the rule hold is removed",
				"2:34 the condition input.update > 5 is negated",
				"2:34 the condition input.update > 5 is true",
				"2:47 > is >= in input.update > 5",
				"2:49 5 is 6",
			},
		},
		"a default": {"default x := 1\n", nil},
		"constants outside of objects": {
			"x := [1, true, \"a\", {\"b\": 2}]\n",
			[]string{"2:1 the rule x is removed", "2:7 1 is 2", "2:10 true is false", `2:16 "a" is "a~"`},
		},
		"a negated condition": {
			"y if not input.paused\n",
			[]string{"2:1 the rule y is removed", "2:6 the condition not input.paused is negated", "2:6 the condition not input.paused is true"},
		},
		"variables and bodies inside": {
			"z if {\n\tsome p in input.pods\n\tn := count([1 | p.ready == true])\n\tn != 0\n}\n",
			[]string{
				"2:1 the rule z is removed",
				"4:18 the condition p.ready == true is negated",
				"4:18 the condition p.ready == true is true",
				"4:26 == is != in p.ready == true",
				"4:29 true is false",
				"5:2 the condition n != 0 is negated",
				"5:2 the condition n != 0 is true",
				"5:4 != is == in n != 0",
				"5:7 0 is 1",
			},
		},
		"an else": {
			"w := 1 if input.a == 1 else := 2 if input.b < 2\n",
			[]string{
				"2:1 the rule w is removed", "2:6 1 is 2", "2:11 the condition input.a == 1 is negated", "2:11 the condition input.a == 1 is true",
				"2:19 == is != in input.a == 1", "2:22 1 is 2",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range mutate.ListMutants(newBundle(t, tc.rules)) {
				if m.File != "a.rego" {
					t.Errorf("%s is changed", m.File)
				}
				got = append(got, fmt.Sprintf("%d:%d %s", m.Row, m.Col, m.Change))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestMutateBundle(t *testing.T) {
	b := newBundle(t, "hold contains {\"reason\": \"R\"} if input.update > 5\n")
	want := []string{"", "if not input.update > 5\n", "if true\n", "if input.update >= 5\n", "if input.update > 6\n"}
	for i, m := range mutate.ListMutants(b) {
		mutated, err := m.MutateBundle(b)
		if err != nil {
			t.Fatalf("%s: %v", m.Change, err)
		}
		if got := mutated.Files["a.rego"]; !strings.HasSuffix(got, want[i]) || i == 0 && strings.Contains(got, "hold") {
			t.Errorf("%s: the file is\n%s", m.Change, got)
		}
		if mutated.Files["a_test.rego"] != b.Files["a_test.rego"] || mutated.Name != b.Name || mutated.Kind != b.Kind || mutated.Revision == b.Revision {
			t.Errorf("%s: the rest of the bundle is %s %s, revision %s", m.Change, mutated.Kind, mutated.Name, mutated.Revision)
		}
	}
	m := mutate.ListMutants(b)[0]
	if _, err := m.MutateBundle(newBundle(t, "x := 1\n")); err == nil {
		t.Error("a mutant of another bundle is made")
	}
	if strings.Contains(b.Files["a.rego"], "true") {
		t.Error("the bundle itself is changed")
	}
}
