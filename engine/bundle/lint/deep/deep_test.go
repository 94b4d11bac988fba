// SPDX-License-Identifier: Apache-2.0

package deep_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/lint/deep"
	"github.com/regatta-sh/regatta/policies"
)

// holdText is a hold of a reason for conditions.
func holdText(reason, conditions string) string {
	return "hold contains {\"reason\": \"" + reason + "\", \"message\": \"It is so.\"} if {\n\t" + conditions + "\n}\n"
}

func TestFindings(t *testing.T) {
	const head = "package extend.rollout.a\n\nimport future.keywords.not\n\n"
	for name, tc := range map[string]struct {
		rules string
		files map[string]string
		want  []string // how the findings begin, in order
	}{
		// Never true.
		"two limits that leave nothing": {
			rules: holdText("A", "input.update > 5\n\tinput.update < 3"),
			want:  []string{"a.rego:7:2: never-true: hold is never true: `input.update > 5` (line 6) and `input.update < 3` contradict each other"},
		},
		"two limits with no integer between":  {rules: holdText("A", "input.update > 2\n\tinput.update < 3"), want: []string{"a.rego:7:2: never-true:"}},
		"two limits with an integer between":  {rules: holdText("A", "input.update > 2\n\tinput.update < 4")},
		"two values":                          {rules: holdText("A", "input.workload.kind == \"CloneSet\"\n\tinput.workload.kind == \"DaemonSet\""), want: []string{"a.rego:7:2: never-true:"}},
		"a value and not it":                  {rules: holdText("A", "input.restart\n\tnot input.restart"), want: []string{"a.rego:7:2: never-true: hold is never true: `input.restart` (line 6) and `not input.restart` contradict"}},
		"a value and its part":                {rules: holdText("A", "not input.workload.labels\n\tinput.workload.labels.a == \"b\""), want: []string{"a.rego:7:2: never-true:"}},
		"a value that is absent and compared": {rules: holdText("A", "not input.restart\n\tinput.restart == true"), want: []string{"a.rego:7:2: never-true:"}},
		"two facts that compare in two ways":  {rules: holdText("A", "input.counts.updated > input.counts.ready\n\tinput.counts.ready >= input.counts.updated"), want: []string{"a.rego:7:2: never-true:"}},
		"a chain of facts":                    {rules: holdText("A", "input.counts.updated > input.counts.ready\n\tinput.counts.ready >= 5\n\tinput.counts.updated < 4"), want: []string{"a.rego:8:2: never-true: hold is never true: `input.counts.updated > input.counts.ready` (line 6), `input.counts.ready >= 5` (line 7) and `input.counts.updated < 4` cannot be true together"}},
		"a text that is a number": {
			rules: holdText("A", "input.update == \"5\""),
			want:  []string{"a.rego:6:2: never-true: hold is never true: `input.update == \"5\"` is true of no integer that input.update can be"},
		},
		"what is left out where it is false": {
			rules: holdText("A", "input.restart == false"),
			want:  []string{"a.rego:6:2: never-true: hold is never true: `input.restart == false` is true of no boolean that input.restart can be"},
		},
		"a fact that is always there":    {rules: holdText("A", "input.counts.total > 3\n\tnot input.workload.name"), want: []string{"a.rego:7:2: never-true:"}},
		"a number, which is never false": {rules: holdText("A", "some pod in input.pods\n\tnot pod.ready"), want: []string{"a.rego:7:2: never-true:"}},
		"a fact that no point has": {
			rules: holdText("A", "input.updates > 5"),
			want:  []string{"a.rego:6:2: never-true: hold is never true: no decision point of rollout has input.updates"},
		},
		"a fact that no point has, in the message": {
			rules: "hold contains {\"reason\": \"A\", \"message\": sprintf(\"%d\", [input.updates])} if input.update > 5\n",
			want:  []string{"a.rego:5:"},
		},
		"facts that no point has together": {
			rules: holdText("A", "input.run.scheduled > 5\n\tsome pod in input.pods\n\tpod.updated"),
			want:  []string{"a.rego:7:2: never-true: hold is never true: no decision point of rollout has all of `input.run.scheduled > 5` (line 6) and `some pod in input.pods`, which it needs together"},
		},
		"facts of one element":              {rules: holdText("A", "some pod in input.pods\n\tpod.updated\n\tnot pod.updated"), want: []string{"a.rego:8:2: never-true:"}},
		"facts of two elements":             {rules: holdText("A", "some pod in input.pods\n\tsome other in input.pods\n\tpod.updated\n\tnot other.updated")},
		"a member of a list that it is not": {rules: holdText("A", "input.workload.kind in {\"CloneSet\", \"DaemonSet\"}\n\tinput.workload.kind == \"StatefulSet\""), want: []string{"a.rego:7:2: never-true:"}},
		"a member of no element":            {rules: holdText("A", "some kind in [\"a\", \"b\"]\n\tinput.workload.kind == kind\n\tinput.workload.kind == \"c\""), want: []string{"a.rego:8:2: never-true:"}},
		"by helpers": {
			rules: holdText("A", "moves\n\tnot rolls_back\n\tinput.update < least") + "\nleast := 1\n\nmoves if input.update != 0\n\nrolls_back if input.update < 0\n\nrolls_back if input.restart\n",
			want:  []string{"a.rego:8:2: never-true: hold is never true: `moves` (line 6), `not rolls_back` (line 7) and `input.update < least`"},
		},
		"an else": {rules: "rank := {} if {\n\tinput.update == 1\n} else := {\"a\": 1} if {\n\tinput.update > 1\n\tinput.update < 1\n}\n", want: []string{"a.rego:9:2: never-true: rank is never true:"}},

		// Always true.
		"a limit beside a tighter one": {
			rules: holdText("A", "input.update > 5\n\tinput.update > 3"),
			want:  []string{"a.rego:7:2: always-true: `input.update > 3` is true wherever `input.update > 5` (line 6) is, so it can go"},
		},
		"a limit before a tighter one":                {rules: holdText("A", "input.update > 3\n\tinput.update > 5"), want: []string{"a.rego:6:2: always-true:"}},
		"the same twice":                              {rules: holdText("A", "startswith(input.workload.name, \"a\")\n\tstartswith(input.workload.name, \"a\")"), want: []string{"a.rego:7:2: always-true:"}},
		"a fact that is there in each input":          {rules: holdText("A", "input.workload.name\n\tinput.update > 0"), want: []string{"a.rego:6:2: always-true: `input.workload.name` is true wherever `input.update > 0` (line 7) is, so it can go"}},
		"a count that cannot be less":                 {rules: holdText("A", "count(input.workload.annotations) >= 0\n\tinput.workload.annotations.a"), want: []string{"a.rego:6:2: always-true:"}},
		"a fact that may be left out":                 {rules: holdText("A", "input.restart\n\tinput.update > 0")},
		"a fact that may be false":                    {rules: holdText("A", "input.strategy.paused\n\tinput.update > 0")},
		"a fact that only one point of two has":       {rules: holdText("A", "input.workload.name")},
		"the absence of what no point has":            {rules: holdText("A", "not input.updates\n\tinput.update > 0"), want: []string{"a.rego:6:2: always-true: `not input.updates` is true of each input, so it can go"}},
		"a guard of a function that may fail":         {rules: holdText("A", "input.workload.name != \"\"\n\tto_number(input.workload.name) > 3\n\tinput.workload.name == \"5\"")},
		"the presence of what is compared":            {rules: holdText("A", "input.workload.labels.a\n\tinput.workload.labels.a == \"b\""), want: []string{"a.rego:6:2: always-true:"}},
		"the presence of what may be false elsewhere": {rules: holdText("A", "input.workload.labels.a == \"b\"\n\tinput.workload.annotations.a")},
		"a setting":                             {rules: holdText("A", "settled.on\n\tinput.update > 0") + "\nsettled := {\"on\": true}\n"},
		"a variable that only it gives a value": {rules: holdText("A", "some i\n\tinput.pods[i].updated\n\tinput.pods[i].updated == true")},
		"other facts":                           {rules: holdText("A", "input.workload.name with input as {}")},

		// Covered.
		"a hold of more conditions": {
			rules: holdText("A", "input.update > 5") + "\n" + holdText("B", "input.update > 7\n\tinput.restart"),
			want:  []string{"a.rego:9:1: covered: this hold adds nothing: wherever it is true the one at a.rego:5 is, and reaches as much"},
		},
		"the same hold": {
			rules: holdText("A", "input.update > 5") + "\n" + holdText("A", "input.update > 5"),
			want:  []string{"a.rego:9:1: covered: this hold is there twice: the one at a.rego:5 has the same reason and is true of the same inputs"},
		},
		"a hold of other conditions": {rules: holdText("A", "input.update > 5") + "\n" + holdText("B", "input.restart\n\tinput.update > 3")},
		"a hold of a pod and one of all": {
			rules: "hold contains {\"reason\": \"A\", \"message\": \"M\", \"pod\": pod.name} if some pod in input.pods\n\nhold contains {\"reason\": \"B\", \"message\": \"M\"} if {\n\tsome one in input.pods\n\tone.updated\n}\n",
		},
		"a hold of a pod, and one of the same": {
			rules: "hold contains {\"reason\": \"A\", \"message\": \"M\", \"pod\": pod.name} if some pod in input.pods\n\nhold contains {\"reason\": \"B\", \"message\": \"M\", \"pod\": one.name} if {\n\tsome one in input.pods\n\tone.updated\n}\n",
			want:  []string{"a.rego:7:1: covered:"},
		},
		"a hold whose message may be absent": {
			rules: "hold contains {\"reason\": \"A\", \"message\": input.workload.labels.why} if input.update > 5\n\n" + holdText("B", "input.update > 6"),
		},
		"a hold that ends":                   {rules: holdText("A", "input.update > 5") + "\nhold contains {\"reason\": \"B\", \"message\": \"M\", \"until\": \"2026-01-01T00:00:00Z\"} if input.update > 6\n"},
		"a hold in another file and package": {files: map[string]string{"b.rego": "package extend.rollout.b\n\n" + holdText("A", "input.update > 5"), "a.rego": "package extend.rollout.a\n\n" + holdText("B", "input.update == 6")}, want: []string{"a.rego:3:1: covered: this hold adds nothing: wherever it is true the one at b.rego:3 is"}},

		// Each round.
		"the time in a message":             {rules: "hold contains {\"reason\": \"A\", \"message\": sprintf(\"It is %d.\", [input.now])} if input.update > 5\n", want: []string{"a.rego:5:42: changes-each-round: message has the time in it"}},
		"seconds since something":           {rules: "hold contains {\"reason\": \"A\", \"message\": text} if {\n\tage := (input.now / 1000000000) - to_number(input.workload.labels.since)\n\ttext := sprintf(\"for %d s\", [floor(age)])\n}\n", want: []string{"a.rego:5:"}},
		"days since something":              {rules: "hold contains {\"reason\": \"A\", \"message\": text} if {\n\tage := (input.now / 86400000000000) - to_number(input.workload.labels.since)\n\ttext := sprintf(\"for %d days\", [floor(age)])\n}\n"},
		"the day":                           {rules: "hold contains {\"reason\": \"A\", \"message\": time.format([input.now, \"UTC\", \"2006-01-02\"])} if input.update > 5\n"},
		"the minute":                        {rules: "hold contains {\"reason\": \"A\", \"message\": clock} if input.update > 5\n\nclock := time.format([input.now, \"UTC\", \"15:04\"])\n", want: []string{"a.rego:5:42: changes-each-round:"}},
		"an end that moves":                 {rules: "hold contains {\"reason\": \"A\", \"message\": \"M\", \"until\": time.format(input.now + 60000000000)} if input.update > 5\n"},
		"a time that does not move":         {rules: "hold contains {\"reason\": \"A\", \"message\": sprintf(\"%d\", [input.run.scheduled])} if input.now > 5\n"},
		"the difference of the time to now": {rules: "hold contains {\"reason\": \"A\", \"message\": sprintf(\"%d\", [input.now - input.now])} if input.update > 5\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"a.rego": head + tc.rules}
			if tc.files != nil {
				files = maps.Clone(tc.files)
			}
			b, err := bundle.FromFiles("own", files)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range deep.CheckBundle(b) {
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

// TestNothingIsFoundInWhatWeShip holds the built-in policies and all examples to the checks.
func TestNothingIsFoundInWhatWeShip(t *testing.T) {
	const examples = "../../../../policies/examples"
	folders, err := filepath.Glob(examples + "/*/bundle.yaml")
	if err != nil || len(folders) < 30 {
		t.Fatalf("there are %d examples: %v", len(folders), err)
	}
	builtin, err := bundle.ReadBuiltin(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	all := []*bundle.Bundle{builtin}
	for _, file := range folders {
		dir := filepath.Dir(file)
		b, err := bundle.FromFS(filepath.Base(dir), os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	for _, b := range all {
		for _, f := range deep.CheckBundle(b) {
			t.Errorf("%s: %s: %s: %s", b.Name, f.SourcePosition(), f.Rule, f.Message)
		}
	}
}
