// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
)

// idle has rules that can do nothing, of all kinds that lint finds. What the guide shows is the first four.
const idle = `# METADATA
# scope: package
# title: T
# description: D
# labels: {id: half}
package extend.rollout.half

import future.keywords.not

hold contains {"reason": "A", "message": "It is so."} if {
	input.update > 5
	input.update < 3
}

hold contains {"reason": "B", "message": "It is so."} if {
	input.update > 0
	input.restart == false
}

hold contains {"reason": "C", "message": "It is so."} if {
	input.counts.ready > 0
	input.update > 5
	input.update > 3
}

hold contains {"reason": "D", "message": "It is so."} if {
	input.counts.ready > 1
	input.update > 6
}
`

const unseen = `package extend.rollout.unseen

hold contains {"reason": "A", "message": "It is so."} if {
	input.update > 5
	lower(input.workload.name) == "WEB"
}
`

func TestDeepLint(t *testing.T) {
	a := newAuthor(t)
	a.write("idle/half.rego", idle)
	a.write("unseen/unseen.rego", unseen)
	a.write("refused/a.rego", strings.Replace(unseen, "input.update", "input.updates", 1))
	a.write("half/half.rego", half)
	const never = "idle/half.rego:12:2: never-true: hold is never true: `input.update > 5` (line 11) and `input.update < 3` contradict each other\n"
	for name, tc := range map[string]struct {
		types  string
		code   int
		want   []string
		absent string
	}{
		"what can never be": {"lint --deep idle", 1, []string{
			never,
			"idle/half.rego:17:2: never-true: hold is never true: `input.restart == false` is true of no boolean that input.restart can be\n",
			"idle/half.rego:23:2: always-true: `input.update > 3` is true wherever `input.update > 5` (line 22) is, so it can go\n",
			"idle/half.rego:26:1: covered: this hold adds nothing: wherever it is true the one at half.rego:20 is, and reaches as much\n",
		}, "never-seen"},
		"without --deep":                    {"lint idle", 1, []string{"missing-tests"}, "never-true"},
		"for GitHub":                        {"lint --deep idle -o github --timeout 0", 1, []string{"::error file=idle/half.rego,line=12,col=2,title=never-true::hold is never true"}, "never-seen"},
		"as SARIF":                          {"lint --deep idle -o sarif --timeout 0", 1, []string{`"ruleId": "always-true"`, `"id": "never-seen"`}, ""},
		"as JSON":                           {"lint --deep idle -o json --timeout 0", 1, []string{`"rule": "covered"`}, ""},
		"what no input made true":           {"lint --deep unseen", 1, []string{"unseen/unseen.rego:5:2: never-seen: no input among ", "that were tried makes hold true: `lower(input.workload.name) == \"WEB\"` was true of none of them"}, "never-true"},
		"a note for GitHub":                 {"lint --deep unseen -o github", 1, []string{"::notice file=unseen/unseen.rego,line=5,col=2,title=never-seen::"}, ""},
		"without a search":                  {"lint --deep unseen --timeout 0", 1, nil, "never-seen"},
		"with too little time":              {"lint --deep unseen --timeout 1ns", 1, []string{"warning: unseen is not searched to the end: the time of 1ns was over\n"}, "never-seen"},
		"what the gate refuses":             {"lint --deep refused", 1, []string{"never-true: hold is never true: no decision point of rollout has input.updates", "warning: refused is not searched, since the gate refuses it"}, "never-seen"},
		"a negative time":                   {"lint --deep half --timeout -1s", 2, []string{"--timeout is a duration of 0 or more"}, ""},
		"a time without --deep":             {"lint half --timeout 1s", 2, []string{"--timeout is for the search of --deep"}, ""},
		"a rule of a fact of another point": {"lint --deep half", 1, []string{"half/half.rego:5:15: never-seen: ", "tried makes rank true: `input.update > 7`"}, "never-true"},
	} {
		t.Run(name, func(t *testing.T) {
			got, code := a.types(tc.types)
			if code != tc.code || tc.absent != "" && strings.Contains(got, tc.absent) {
				t.Errorf("it ended with %d, want %d, and must not have %q\n%s", code, tc.code, tc.absent, got)
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("there is no %q in\n%s", want, got)
				}
			}
		})
	}
}

// TestNotesAreNoFindings lets lint end with 0 where there are only notes.
func TestNotesAreNoFindings(t *testing.T) {
	a := newAuthor(t)
	a.write("unseen/unseen.rego", strings.Replace(idle[:strings.Index(idle, "hold")], "half", "unseen", -1)+unseen[strings.Index(unseen, "hold"):])
	a.write("unseen/unseen_test.rego", "package extend.rollout.unseen_test\n\ntest_it if data.extend.rollout.unseen.hold == set()\n")
	if got, code := a.types("lint --deep unseen"); code != 0 || !strings.Contains(got, "never-seen") {
		t.Errorf("it ended with %d\n%s", code, got)
	}
}
