// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"strings"
	"testing"
)

const edge = `package extend.rollout.edge

hold contains {"reason": "R", "message": "m"} if input.update > 5
`

func TestMutants(t *testing.T) {
	const weak = "package extend.rollout.edge_test\ntest_it if count(data.extend.rollout.edge.hold) == 1 with input as {\"update\": 9}"
	const strong = weak + "\ntest_six if count(data.extend.rollout.edge.hold) == 1 with input as {\"update\": 6}\n" +
		"test_five if count(data.extend.rollout.edge.hold) == 0 with input as {\"update\": 5}\n"
	const fiveGoes = "defaults: {input: {strategy: {type: RollingUpdate}}}\ncases: [{name: five goes, point: rollout/plan, input: {update: 5}, want: {holds: []}}, {name: six waits, point: rollout/plan, input: {update: 6}, want: {holds: [{rule: extend.rollout.edge, reason: R, message: m}]}}]"
	for name, tc := range map[string]struct {
		types, tests, cases string
		code                int
		want                []string
	}{
		"tests that notice little": {"test edge --mutate --min-killed 50", weak, "", 1, []string{
			"edge/edge.rego:3:50: no test notices that the condition input.update > 5 is true\n",
			"edge/edge.rego:3:63: no test notices that > is >=\n",
			"edge/edge.rego:3:65: no test notices that 5 is 6\n",
			"mutants: 1 of 4 killed, 3 survived, 1 invalid\n",
			"Error: tests and cases notice 25.0 % of the changes, and 50 % are wanted\n",
		}},
		"tests that notice all":       {"test edge --mutate --min-killed 100", strong, "", 0, []string{"mutants: 4 of 4 killed, 0 survived, 1 invalid\n"}},
		"a test that fails":           {"test edge --mutate", strings.Replace(weak, "== 1", "== 2", 1), "", 1, []string{"0 of 1 test passed, 0 cases run\nError: tests failed\n"}},
		"mutants as JUnit":            {"test edge --mutate --max-mutants 3 -o junit", weak, "", 0, []string{`<testsuite name="mutants" tests="2" failures="1" skipped="0">`, `<failure message="no test and no case notices it">`}},
		"changes that are invalid":    {"test edge --mutate --max-mutants 1 -v", strong, "", 0, []string{"edge/edge.rego:3:1: it is invalid that the rule hold is removed\n", "mutants: 0 of 0 killed"}},
		"no change that counts":       {"test edge --mutate --max-mutants 1 --min-killed 1", strong, "", 1, []string{"Error: there is no change that tests and cases could notice, and 1 % are wanted\n"}},
		"no more mutants than wanted": {"test edge --mutate --max-mutants 2", strong, "", 0, []string{"mutants: 1 of 1 killed, 0 survived, 1 invalid, 3 not tried\n"}},
		"a percentage that is none":   {"test edge --mutate --min-killed 101", weak, "", 2, []string{"--min-killed is a percentage"}},
		"no mutants at all":           {"test edge --mutate --max-mutants 0", weak, "", 2, []string{"--max-mutants is 0"}},
		"a minimum without mutants":   {"test edge --min-killed 10", weak, "", 2, []string{"are for --mutate"}},
		"cases notice too":            {"test edge --mutate", weak, fiveGoes, 0, []string{"mutants: 4 of 4 killed, 0 survived, 1 invalid\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthor(t)
			a.write("edge/edge.rego", edge)
			a.write("edge/edge_test.rego", tc.tests)
			if tc.cases != "" {
				a.write("edge/cases/x.yaml", tc.cases)
			}
			got, code := a.types(tc.types)
			for _, want := range tc.want {
				if code != tc.code || !strings.Contains(got, want) {
					t.Errorf("it ended with %d, want %d\n%s\nwant\n%s", code, tc.code, got, want)
				}
			}
			if strings.Contains(got, "mutants:") && tc.code == 1 && !strings.Contains(tc.types, "--min-killed") {
				t.Errorf("a bundle whose tests fail is mutated:\n%s", got)
			}
		})
	}
}

func TestMutantsAsJSON(t *testing.T) {
	a := newAuthor(t)
	a.write("edge/edge.rego", edge)
	got, code := a.types("test edge --mutate --max-mutants 3 -o json")
	var out struct {
		Mutants struct {
			Killed   int
			Survived []struct {
				File, Change string
				Row, Col     int
			}
		}
	}
	if err := json.Unmarshal([]byte(got), &out); err != nil || code != 0 {
		t.Fatalf("it ended with %d: %v\n%s", code, err, got)
	}
	if s := out.Mutants.Survived; len(s) != 2 || s[0].File != "edge/edge.rego" || s[0].Row != 3 || s[0].Col != 50 || s[0].Change != "the condition input.update > 5 is negated" {
		t.Errorf("survived: %+v", s)
	}
}
