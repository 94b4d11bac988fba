// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/prove"
)

// TestRulesThatAreTrueOfNoInputAreFound searches with rules that structure does not show to be never true.
func TestRulesThatAreTrueOfNoInputAreFound(t *testing.T) {
	const head = "package extend.rollout.a\n\nimport future.keywords.not\n\n"
	r := newRig(t)
	for name, tc := range map[string]struct {
		rules string
		want  []string
	}{
		"a rule that is true somewhere": {rules: "hold contains {\"reason\": \"A\", \"message\": \"M\"} if {\n\tinput.update > 5\n\tinput.workload.labels.tier == \"gold\"\n}\n"},
		"a rule of what no text can be": {
			rules: "hold contains {\"reason\": \"A\", \"message\": \"M\"} if {\n\tinput.update > 5\n\tlower(input.workload.name) == \"WEB\"\n}\n",
			want:  []string{"a.rego:5-8 hold: lower(input.workload.name) == \"WEB\" at 7:2"},
		},
		"one clause of two": {
			rules: "hold contains {\"reason\": \"A\", \"message\": \"M\"} if input.update > 5\n\nhold contains {\"reason\": \"B\", \"message\": \"M\"} if input.update * 0 > 5\n",
			want:  []string{"a.rego:7-7 hold: input.update * 0 > 5 at 7:50"},
		},
		"a rule of pods that are ranked": {rules: "hold contains {\"reason\": \"A\", \"message\": \"M\", \"pod\": pod.name} if {\n\tsome pod in input.pods\n\tpod.zone == \"b\"\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := bundle.FromFiles("own", map[string]string{"a.rego": head + tc.rules})
			if err != nil {
				t.Fatal(err)
			}
			q := r.question(prove.NeverFails, nil, b)
			q.Limits.Worlds = 500
			got, err := prove.FindIdleRules(t.Context(), q)
			if err != nil || got.Stopped != "" {
				t.Fatalf("%+v, %v", got, err)
			}
			var texts []string
			for _, i := range got.Rules {
				texts = append(texts, fmt.Sprintf("%s:%d-%d %s: %s at %d:%d", i.File, i.Row, i.EndRow, i.Name, i.Condition, i.ConditionRow, i.ConditionCol))
				if i.Worlds < 10 {
					t.Errorf("%d inputs were tried", i.Worlds)
				}
			}
			if fmt.Sprint(texts) != fmt.Sprint(tc.want) {
				t.Errorf("got\n%q, want\n%q", texts, tc.want)
			}
		})
	}
}

func TestASearchForIdleRulesEndsWithItsContext(t *testing.T) {
	r := newRig(t)
	b, own := example(t, "change-freeze")
	q := r.question(prove.NeverFails, nil, b)
	q.Cases = own
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := prove.FindIdleRules(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %+v, %v", got, err)
	}
}

func TestRulesOfExamplesAreTrueOfSomeInput(t *testing.T) {
	r := newRig(t)
	for _, name := range exampleNames(t) {
		b, own := example(t, name)
		q := r.question(prove.NeverFails, nil, b)
		q.Cases = append(own, q.Cases...)
		q.Limits.Worlds = 10_000 // the search of a bundle ends when each of its rules was true
		got, err := prove.FindIdleRules(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, i := range got.Rules {
			t.Errorf("%s: %+v", name, i)
		}
	}
}
