// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProve(t *testing.T) {
	a := newAuthor(t)
	a.write("old/x.rego", many(2))
	a.write("loose/x.rego", many(3))
	a.write("strict/x.rego", many(1))
	a.write("same.rego", many(2))
	a.write("wrong/x.rego", "package extend.rollout.x\n\nhold contains {} if input.nope")
	a.write("fails/x.rego", strings.Replace(many(2), "input.update > 2", `to_number(input.workload.annotations.x) > 2`, 1))
	a.write("except/x.rego", strings.Replace(many(2), "input.update > 2", "{\n\tinput.update > 2\n\tinput.workload.namespace != \"dev\"\n}", 1))
	a.record("then.jsonl", many(2))
	const at = " --point rollout/plan --worlds 400 --timeout 10m"
	for _, tc := range []struct {
		name, types string
		code        int
		want        string
	}{
		{
			"looser", "prove --never-looser-than old loose" + at, 1, `looser: rollout/plan
  old:   Hold, TooMany by x.many: There are too many.
  new:   Go
  lost:  TooMany of x.many at old/x.rego:7:1

  cases:
    - name: TooMany of x.many applies
      point: rollout/plan
      input:
`,
		},
		{"as strict", "prove --never-looser-than old same.rego" + at, 0, "no counterexample up to size 2: "},
		{"all that the values make, and says so", "prove --never-looser-than old same.rego" + at, 0, "(all that the values below make of "},
		{"what it is no statement about", "prove --never-looser-than old same.rego" + at, 0, "This says nothing about other inputs, nor about how long decisions take.\n"},
		{"stricter", "prove --never-looser-than old strict" + at, 0, "  varied: input.update ("},
		{"stricter where nothing may differ", "prove --equal old strict" + at, 1, "  added: TooMany of x.many at strict/x.rego:7:1\n"},
		{"another answer where it may differ", `prove --same-unless input.workload.namespace=="dev" old except` + at, 0, "for which the condition is true"},
		{"another answer where it may not", `prove --same-unless input.workload.namespace=="prod" old except` + at, 1, "Error: there is a counterexample: looser at rollout/plan\n"},
		{"no decision", "prove --never-fails fails" + at, 1, "error: rollout/plan\n  new:   no decision (Error): "},
		{"a decision each time", "prove --never-fails old" + at, 0, "no counterexample"},
		{"recorded inputs", "prove --equal old same.rego --from then.jsonl" + at, 0, "no counterexample"},
		{"a team's bundle", "prove -n shop --never-looser-than old loose" + at, 1, "looser: rollout/plan"},
		{"as JSON", "prove -o json --never-looser-than old loose" + at, 1, `"kind": "looser"`},
		{"as JUnit", "prove -o junit --never-looser-than old loose" + at, 1, `<testcase classname="loose" name="rollout/plan is never-looser">`},
		{"as SARIF", "prove -o sarif --never-looser-than old loose" + at, 1, `"uri": "old/x.rego"`},
		{"for GitHub", "prove -o github --never-looser-than old loose" + at, 1, "::error file=old/x.rego,line=7,col=1,title=looser::"},
		{"a bundle that the gate refuses", "prove --never-looser-than old wrong" + at, 1, "undefined ref: input.nope"},
		{"an old bundle that the gate refuses", "prove --never-looser-than wrong old" + at, 1, "wrong/x.rego:3:"},
		{"no mode", "prove old", 2, "at least one of the flags"},
		{"two modes", "prove --never-fails --equal old loose", 2, "none of the others can be"},
		{"one bundle where two are compared", "prove --equal old", 2, "need two bundles"},
		{"two bundles where one is asked about", "prove --never-fails old loose", 2, "need one bundle"},
		{"a condition that is empty", "prove --same-unless= old loose", 2, "--same-unless is empty"},
		{"a condition that is none", "prove --same-unless input.( old loose", 2, "--same-unless: reading the condition"},
		{"a point that is not there", "prove --never-fails old --point a/b", 2, "no decision point"},
		{"a point that the bundle has nothing to do with", "prove --never-fails old --point node/images", 3, "take part in no decision point"},
		{"no worlds", "prove --never-fails old --worlds 0", 2, "--worlds"},
		{"too many worlds", "prove --never-fails old --worlds 2000001", 2, "--worlds is 2000001, want a number from 1 to 2000000"},
		{"a condition that fails", `prove --same-unless to_number(input.workload.labels.n)>5 old same.rego` + at, 0, "for which the condition failed to evaluate, so that a difference counts"},
		{"a difference where the condition fails", `prove --same-unless to_number(input.workload.labels.n)>5 old strict` + at, 1, "Error: there is a counterexample"},
		{"no time", "prove --never-fails old --timeout 0s", 2, "--timeout"},
		{"a bundle that is not there", "prove --never-fails gone", 3, "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if out := proves(t, a, tc.types, tc.code); !strings.Contains(out, tc.want) {
				t.Errorf("there is no %q in\n%s", tc.want, out)
			}
		})
	}
}

// proves types a command, which must end with a code.
func proves(t *testing.T, a author, line string, code int) string {
	t.Helper()
	out, got := a.types(line)
	if got != code {
		t.Errorf("%s ends with %d, want %d:\n%s", line, got, code, out)
	}
	return out
}

func TestProveWritesACase(t *testing.T) {
	a := newAuthor(t)
	a.write("old/x.rego", many(2))
	a.write("loose/x.rego", many(3))
	const prove = "prove --never-looser-than old loose --point rollout/plan --timeout 10m --write "
	out := proves(t, a, prove+"old", 1)
	file := filepath.Join("old", "cases", "counterexample-rollout-plan.yaml")
	if !strings.Contains(out, "  case:  "+file+"\n") {
		t.Errorf("the case is not named in\n%s", out)
	}
	if out := proves(t, a, prove+"old", 1); !strings.Contains(out, file+" is there already") {
		t.Errorf("the case is overwritten: %s", out)
	}
	proves(t, a, prove+"loose", 1)
	proves(t, a, "test old", 0)
	if out := proves(t, a, "test loose", 1); !strings.Contains(out, "TooMany of x.many applies") {
		t.Errorf("the case passes: %s", out)
	}
}

func TestProveBuiltinPolicies(t *testing.T) {
	a := newAuthor(t)
	a.write("old/rollout/plan.rego", builtin)
	a.write("new/rollout/plan.rego", strings.Replace(builtin, `"maxUnavailable": 1`, `"maxUnavailable": 2`, 1))
	const at = " --point rollout/plan --builtin --timeout 10m"
	if out := proves(t, a, "prove --never-looser-than old new"+at, 1); !strings.Contains(out, "looser: rollout/plan") {
		t.Errorf("it is not found: %s", out)
	}
	proves(t, a, "prove --never-looser-than new old"+at, 0)
	if _, err := os.Stat("cases"); err == nil {
		t.Error("a case was written")
	}
}

func TestProveBuiltinPoliciesWithOtherDataOrImports(t *testing.T) {
	a := newAuthor(t)
	const at = " --point rollout/plan --builtin --worlds 400 --timeout 10m"
	reads := strings.Replace(builtin, `"maxUnavailable": 1`, `"maxUnavailable": chosen.most`, 1)
	reads = strings.Replace(reads, "package rollout\n", "package rollout\n\nimport data.one as chosen\n", 1)
	for _, dir := range []string{"old", "data", "imports"} {
		a.write(dir+"/rollout/plan.rego", reads)
		a.write(dir+"/one/data.json", `{"most": 1}`)
		a.write(dir+"/two/data.json", `{"most": 2}`)
	}
	a.write("data/one/data.json", `{"most": 2}`)
	a.write("imports/rollout/plan.rego", strings.Replace(reads, "import data.one", "import data.two", 1))
	for _, dir := range []string{"data", "imports"} {
		if out := proves(t, a, "prove --never-looser-than old "+dir+at, 1); !strings.Contains(out, "looser: rollout/plan") {
			t.Errorf("it is not found: %s", out)
		}
	}
}
