// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy"
	"github.com/regatta-sh/regatta/engine/bundle"
)

const builtin = `package rollout

# METADATA
# labels:
#   id: rollout.plan
plan := {"limit": input.update, "maxUnavailable": 1, "holds": [h | some p; some h in data.extend.rollout[p].hold], "scatter": []}
`

const hold = `package extend.rollout.a

hold contains {"reason": "R", "message": "m"} if input.update > 5
`

func TestCommands(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		args  string // DIR represents the folder
		stdin string
		want  []string
		err   string
	}{
		"check a good bundle": {
			files: map[string]string{"a.rego": hold}, args: "check DIR", want: []string{"DIR: good, with 0 tests"},
		},
		"check one file": {
			files: map[string]string{"a.rego": hold}, args: "check DIR/a.rego", want: []string{"DIR/a.rego: good"},
		},
		"check a bundle that does not parse": {
			files: map[string]string{"x/a.rego": "package extend.rollout.a\nx = {"}, args: "check DIR", want: []string{"DIR/x/a.rego:2:"}, err: "refused",
		},
		"check a bundle with a misspelt fact": {
			files: map[string]string{"a.rego": strings.Replace(hold, "input.update", "input.updates", 1)}, args: "check DIR",
			want: []string{"DIR/a.rego:3:50: rego_type_error: undefined ref: input.updates"}, err: "refused",
		},
		"check a tenant's bundle": {
			files: map[string]string{"a.rego": "package override.rollout\nplan := 1"}, args: "check -n shop DIR",
			want: []string{"DIR/a.rego:1:1: package override.rollout: only platform engineers"}, err: "refused",
		},
		"check as JSON": {
			files: map[string]string{"a.rego": "package x\ny := 1"}, args: "check -o json DIR", want: []string{`"refused": "packages"`, `"row": 1`}, err: "refused",
		},
		"check built-in policies": {
			files: map[string]string{"rollout/plan.rego": builtin}, args: "check --builtin DIR", want: []string{"good"},
		},
		"check two bundles that are in each other's way": {
			files: map[string]string{"a/a.rego": hold, "b/a.rego": hold}, args: "check DIR/a DIR/b",
			want: []string{"DIR/a: good", "DIR/b/a.rego:1:1: package extend.rollout.a of bundle b belongs to bundle a already"}, err: "refused",
		},
		"check nothing":             {args: "check", err: "requires at least 1 arg"},
		"check what is not there":   {args: "check DIR/none", err: "no such file"},
		"check a folder of nothing": {files: map[string]string{"README.md": "x"}, args: "check DIR", want: []string{"DIR:1:1: the bundle has no policy"}, err: "refused"},

		"test with coverage": {
			files: map[string]string{
				"a.rego":           hold + "\nrank := {} if input.never\n",
				"a_test.rego":      "package extend.rollout.a_test\ntest_it if count(data.extend.rollout.a.hold) == 1 with input as {\"update\": 6}",
				"cases/plan.yaml":  "cases: [{name: a small step goes, point: rollout/plan, input: {update: 1}, want: {holds: []}}]",
				"cases/plan2.yaml": "cases: [{name: a large step is held, point: rollout/plan, input: {update: 6}, want: {holds: [{reason: R, message: m, rule: rollout}]}}]",
			},
			args: "test --coverage DIR", err: "failed", want: []string{"DIR/a.rego:5:15: rego_type_error: undefined ref: input.never"},
		},
		"test what passes": {
			files: map[string]string{
				"a.rego":          hold + "\nrank := {} if input.update > 7\n",
				"a_test.rego":     "package extend.rollout.a_test\ntest_it if count(data.extend.rollout.a.hold) == 1 with input as {\"update\": 6}",
				"cases/plan.yaml": "cases: [{name: a large step is held, point: rollout/plan, input: {update: 6}, want: {holds: [{reason: R, message: m, rule: rollout}]}}]",
			},
			args: "test --coverage -v DIR",
			want: []string{"DIR/a_test.rego:2:1: passed: extend.rollout.a_test.test_it", "DIR/cases/plan.yaml:1:9: passed: a large step is held", "1 of 1 test passed, 1 case run", "run\nDIR/a.rego:5: no test evaluates this\ncoverage: 50.0 % of 2 lines"},
		},
		"test that fails": {
			files: map[string]string{"a.rego": hold, "a_test.rego": "package extend.rollout.a_test\ntest_it if false"}, args: "test DIR",
			want: []string{"DIR/a_test.rego:2:1: extend.rollout.a_test.test_it failed", "0 of 1 test passed"}, err: "tests failed",
		},
		"case that fails": {
			files: map[string]string{"a.rego": hold, "cases/x.yaml": "cases: [{name: wrong, point: rollout/plan, input: {update: 1}, want: {limit: 2}}]"}, args: "test DIR",
			want: []string{"DIR/cases/x.yaml:1:9: wrong: limit is 1, want 2"}, err: "tests failed",
		},
		"case that is no case": {
			files: map[string]string{"a.rego": hold, "cases/x.yaml": "x: 1"}, args: "test DIR", want: []string{`DIR/cases/x.yaml:1:1: reading the cases: unknown field "x"`, "0 of 0 tests passed, 1 case run"}, err: "tests failed",
		},

		"fmt the standard input":              {args: "fmt -", stdin: "package  a\nb :=1", want: []string{"package a\n\nb := 1\n"}},
		"fmt the standard input, only to see": {args: "fmt --check -", stdin: "package  a", want: []string{"-\n"}, err: "not formatted"},
		"lint what needs quotes in a URI": {
			files: map[string]string{"my policy.rego": hold}, args: "lint -o sarif DIR", want: []string{`"uri": "file://DIR/my%20policy.rego"`}, err: "something to change",
		},
		"eval from the standard input": {
			args: "eval rollout/plan", stdin: `{update: 3}`, want: []string{`"limit": 3`, `"outcome": "Decided"`, `"id": "rollout.plan"`, `"verdict": "Go"`},
		},
		"eval with a bundle": {
			files: map[string]string{"b/a.rego": hold, "in.json": `{"update": 6}`}, args: "eval rollout/plan --input DIR/in.json -b DIR/b",
			want: []string{`"verdict": "Hold"`, `"reason": "R"`, `"id": "extend.rollout.a"`},
		},
		"eval without an answer": {
			args: "eval rollout/rank", stdin: `{}`, want: []string{`"outcome": "Undefined"`}, err: "there was no decision (Undefined), so this is the fallback",
		},
		"eval a point that is not there": {args: "eval rollout/pln", err: "there is no decision point rollout/pln; there are rollout/change"},
		"eval a misspelt question":       {args: "eval rollout/plan", stdin: `{updat: 3}`, err: `unknown field "updat"`},
		"eval a number that is a text":   {args: "eval rollout/plan", stdin: `{"update": "3"}`, err: "reading the input of rollout/plan: update is a string, and must be an integer"},
		"eval two questions":             {args: "eval rollout/plan", stdin: "update: 3\n---\nupdate: 4\n", err: "reading the input: line 2: there is a second document"},
		"eval what is cut off":           {args: "eval rollout/plan", stdin: "{\"update\": 3,\n", err: "reading the input: line 1: did not find"},
		"eval no YAML":                   {args: "eval rollout/plan", stdin: `{`, err: "reading the input"},
		"eval with a bundle that is wrong": {
			files: map[string]string{"b/a.rego": "x"}, args: "eval rollout/plan -b DIR/b", stdin: `{}`, err: "DIR/b/a.rego:1:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tc.files {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out, err := run(t, strings.ReplaceAll(tc.args, "DIR", dir), tc.stdin)
			for _, want := range tc.want {
				if !strings.Contains(out, strings.ReplaceAll(want, "DIR", dir)) {
					t.Errorf("there is no %q in\n%s", want, out)
				}
			}
			if (tc.err == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), strings.ReplaceAll(tc.err, "DIR", dir))) {
				t.Errorf("the error is %v, want %q", err, tc.err)
			}
		})
	}
}

func run(t *testing.T, args, stdin string) (string, error) {
	t.Helper()
	cmd := policy.New(fstest.MapFS{"rollout/plan.rego": {Data: []byte(builtin)}})
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetArgs(strings.Fields(args))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestAnArchiveIsChecked(t *testing.T) {
	b, err := bundle.FromFiles("a", map[string]string{"a.rego": hold})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.tar.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.PackArchive(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, "check "+path, ""); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
