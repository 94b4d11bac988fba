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
				"2:47 > is >=",
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
				"4:26 == is !=",
				"4:29 true is false",
				"5:2 the condition n != 0 is negated",
				"5:2 the condition n != 0 is true",
				"5:4 != is ==",
				"5:7 0 is 1",
			},
		},
		"what is negated has the place of its negation": {
			"y if not input.update > 3 or input.paused\n",
			[]string{
				"2:1 the rule y is removed",
				"2:6 the condition not input.update > 3 or input.paused is negated",
				"2:6 the condition not input.update > 3 or input.paused is true",
				"2:6 the condition not input.update > 3 is negated",
				"2:6 the condition not input.update > 3 is true",
				"2:23 > is >=",
				"2:25 3 is 4",
				"2:30 the condition input.paused is negated",
				"2:30 the condition input.paused is true",
			},
		},
		"a negated body": {
			"y if not { input.a; input.b }\n",
			[]string{
				"2:1 the rule y is removed",
				"2:6 the condition not { input.a; input.b } is negated", "2:6 the condition not { input.a; input.b } is true",
				"2:12 the condition input.a is negated", "2:12 the condition input.a is true", "2:21 the condition input.b is negated", "2:21 the condition input.b is true",
			},
		},
		"values": {
			"allowed := input.x > -5\nrank := {p.name: 1 | some p in input.pods; p.tier == \"gold\"}\nlimit := n if n := 7\ngreet := $\"hello {input.x}\"\nnames contains `a`\n",
			[]string{
				"2:1 the rule allowed is removed", "2:20 > is >=",
				"3:1 the rule rank is removed", `3:44 the condition p.tier == "gold" is negated`, `3:44 the condition p.tier == "gold" is true`, "3:51 == is !=", `3:54 "gold" is "gold~"`,
				"4:1 the rule limit is removed", "4:20 7 is 8",
				"5:1 the rule greet is removed",
				"6:1 the rule names is removed", "6:16 `a` is \"a~\"",
			},
		},
		"every, with, and functions": {
			"f(x, \"a\") := 1 if every p in [1, 2] { p == x } else := 2\ny if f(1, \"b\") == 2 with input as {\"c\": 3}\n",
			[]string{
				"2:1 the rule f is removed", `2:6 "a" is "a~"`, "2:14 1 is 2",
				"2:19 the condition every p in [1, 2] { p == x } is negated", "2:19 the condition every p in [1, 2] { p == x } is true",
				"2:31 1 is 2", "2:34 2 is 3",
				"2:39 the condition p == x is negated", "2:39 the condition p == x is true", "2:41 == is !=",
				"3:1 the rule y is removed",
				`3:6 the condition f(1, "b") == 2 with input as {"c": 3} is negated`, `3:6 the condition f(1, "b") == 2 with input as {"c": 3} is true`, "3:8 1 is 2", `3:11 "b" is "b~"`, "3:16 == is !=", "3:19 2 is 3",
			},
		},
		"metadata": {
			"# METADATA\n# title: T\nx := 1\n",
			[]string{"4:1 the rule x is removed", "4:6 1 is 2"},
		},
		"an else": {
			"w := 1 if input.a == 1 else := 2 if input.b < 2\n",
			[]string{
				"2:1 the rule w is removed", "2:6 1 is 2", "2:11 the condition input.a == 1 is negated", "2:11 the condition input.a == 1 is true",
				"2:19 == is !=", "2:22 1 is 2",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			b := newBundle(t, tc.rules)
			for _, m := range mutate.ListMutants(b) {
				if _, err := m.MutateBundle(b); err != nil {
					t.Errorf("%s is no Rego: %v", m.Change, err)
				}
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
	want := []string{"", "if not { input.update > 5 }\n", "if ({1 | input.update > 5}) != {2}\n", "if input.update >= 5\n", "if input.update > 6\n"}
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
	documented := newBundle(t, "y := 2\n\n# METADATA\n# title: T\n# labels:\n#   id: a.x\nx := 1\n")
	for _, m := range mutate.ListMutants(documented) {
		if mutated, err := m.MutateBundle(documented); err != nil {
			t.Errorf("%s: %v", m.Change, err)
		} else if m.Change == "the rule x is removed" && strings.TrimSpace(mutated.Files["a.rego"]) != "package extend.rollout.a\ny := 2" {
			t.Errorf("%s leaves\n%s", m.Change, mutated.Files["a.rego"])
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
