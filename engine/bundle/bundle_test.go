// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/regatta-sh/regatta/engine/bundle"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		tenant bool
		files  map[string]string
		want   []string // parts of the problems, in order
	}{
		"a hold": {files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if true"}},
		"a hold, a rank, a helper and data beside them": {files: map[string]string{
			"a.rego":                     "package extend.rollout.a\nhold contains {} if f(1)\nrank := {}\nf(x) if x > data.extend.rollout.a.limits.x",
			"extend/rollout/a/data.json": `{"limits": {"x": 1}}`,
		}},
		"settings":                    {files: map[string]string{"a.rego": "package extend.protection.a\nsettings := {}"}},
		"a decision that is replaced": {files: map[string]string{"a.rego": "package override.rollout\nplan := {}"}},
		"a package for others":        {files: map[string]string{"a.rego": "package extend.rollout.a\nimport data.extend.rollout.calendar\nhold contains {} if calendar.closed", "b.rego": "package extend.rollout.calendar\nclosed := true"}},
		"tests beside":                {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "a_test.rego": "package extend.rollout.a_test\ntest_x if true"}},
		"a tenant holds":              {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if true\nrank := {}"}},
		"a tenant denies":             {tenant: true, files: map[string]string{"a.rego": "package extend.protection.a\ndeny contains {} if true"}},
		"a tenant guards":             {tenant: true, files: map[string]string{"a.rego": "package extend.protection.a\nguard contains {} if true"}},

		"no policy at all":               {files: map[string]string{}, want: []string{"own:1:1: the bundle has no policy"}},
		"a built-in package":             {files: map[string]string{"a.rego": "package rollout\nplan := {}"}, want: []string{"a.rego:1:1: package rollout is not one a bundle may have: allowed are extend.<domain>.<name> and override.<domain>, where the domain is one of injection, "}},
		"a package of a helper library":  {files: map[string]string{"a.rego": "package lib.x\nx := 1"}, want: []string{"a.rego:1:1: package lib.x is not one"}},
		"a domain that does not exist":   {files: map[string]string{"a.rego": "package extend.rolout.a\nhold contains {}"}, want: []string{"a.rego:1:1: package extend.rolout.a is not one"}},
		"too short":                      {files: map[string]string{"a.rego": "package extend.rollout\nhold contains {}"}, want: []string{"a.rego:1:1: package extend.rollout is not one"}},
		"too long":                       {files: map[string]string{"a.rego": "package extend.rollout.a.b\nhold contains {}"}, want: []string{"a.rego:1:1: package extend.rollout.a.b is not one"}},
		"a point as a package":           {files: map[string]string{"a.rego": "package override.rollout.plan\nx := 1"}, want: []string{"a.rego:1:1: package override.rollout.plan: a decision is replaced by the rule plan in package override.rollout"}},
		"a misspelt verb":                {files: map[string]string{"a.rego": "package extend.rollout.a\nholds contains {}"}, want: []string{"a.rego:1:1: package extend.rollout.a extends nothing: it needs one of the rules hold, rank, settings"}},
		"a misspelt point":               {files: map[string]string{"a.rego": "package override.rollout\nplann := {}"}, want: []string{"a.rego:1:1: package override.rollout replaces nothing: it needs a rule named like a point of rollout: change, plan"}},
		"a verb of another domain":       {files: map[string]string{"a.rego": "package extend.rollout.a\ndeny contains {}"}, want: []string{"a.rego:2:1: deny means nothing in rollout, where a package may have hold, rank, settings"}},
		"a guard of another domain":      {files: map[string]string{"a.rego": "package extend.rollout.a\nguard contains {}"}, want: []string{"a.rego:2:1: guard means nothing in rollout, where a package may have hold, rank, settings"}},
		"a hold that is no set":          {files: map[string]string{"a.rego": "package extend.rollout.a\nhold := {}"}, want: []string{"a.rego:2:1: hold must be a set"}},
		"a hold that is an object":       {files: map[string]string{"a.rego": "package extend.rollout.a\nhold.x := {}"}, want: []string{"a.rego:2:1: hold must be a set"}},
		"a rank that is a function":      {files: map[string]string{"a.rego": "package extend.rollout.a\nrank(x) := x"}, want: []string{"a.rego:2:1: rank must not be a function"}},
		"a test in a built-in package":   {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "a_test.rego": "package rollout\nplan := 1"}, want: []string{"a_test.rego:1:1: package rollout: tests are in a package below"}},
		"data at the root":               {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "data.json": `{"x": 1}`}, want: []string{"data.json:1:1: data must be in a folder"}},
		"data as opa build packs it":     {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "data.json": `{"extend": {"rollout": {"a": {"limits": 1}}}}`}},
		"no data, as opa build packs it": {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "data.json": `{}`}},
		"a key that poses as a path":     {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "data.json": `{"extend/rollout/a/x": 1}`}, want: []string{"data.json:1:1: data must be in a folder"}},
		"settings that no point reads":   {files: map[string]string{"a.rego": "package extend.node.a\nsettings := {}"}, want: []string{"a.rego:2:1: settings (change a documented knob) has no effect: no decision point of this release reads it in node"}},
		"a domain without points":        {files: map[string]string{"a.rego": "package extend.placement.a\nsettings := {}"}, want: []string{"a.rego:2:1: settings (change a documented knob) has no effect"}},
		"nothing that can be replaced":   {files: map[string]string{"a.rego": "package override.placement\nbanana := {}"}, want: []string{"a.rego:1:1: package override.placement replaces nothing: it needs a rule named like a point of placement"}},
		"an object that poses as a rule": {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "data.json": `{"extend": {"rollout": {"a": {"settings": {}}}}}`}, want: []string{"data.json:1:1: settings must be a rule, not data"}},
		"what is outside of the roots":   {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "data.json": `{"extend": {"rollout": {"b": {"x": 1}}}}`, ".manifest": `{"roots": ["extend/rollout/c"]}`}, want: []string{"a.rego:1:1: package extend.rollout.a is outside of the roots [extend/rollout/c]", "data.json:1:1: the data at extend/rollout/b/x is outside"}},
		"roots that overlap":             {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", ".manifest": `{"roots": ["/extend/", "extend/rollout"]}`}, want: []string{`.manifest:1:1: the roots "extend" and "extend/rollout" overlap`}},
		"data that poses as a hold":      {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "extend/rollout/b/data.yaml": `hold: [{}]`}, want: []string{"extend/rollout/b/data.yaml:1:1: hold must be a rule, not data"}},

		"unification":          {files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if {\n\tx = input.update\n\tx == 5\n}"}, want: []string{"a.rego:3:2: = unifies"}},
		"destructuring is not": {files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if {\n\t[x, y] := [1, 2]\n\tsome i, z in [x, y]\n\ti == z\n}"}},

		"a tenant refers to its own": {tenant: true, files: map[string]string{
			"a.rego":                     "package extend.rollout.a\nimport data.extend.rollout.b\nhold contains {} if b.closed[data.extend.rollout.a.days[_]]",
			"b.rego":                     "package extend.rollout.b\nclosed := data.extend.rollout.b.list",
			"extend/rollout/a/data.json": `{"days": []}`, "extend/rollout/b/data.json": `{"list": {}}`,
			"a_test.rego": "package extend.rollout.a_test\ntest_plan if data.rollout.plan with input as {}",
		}},
		"a tenant refers to another's":     {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if data.extend.rollout.other.x"}, want: []string{"a.rego:2:21: data.extend.rollout.other.x is not its own: a bundle of a namespace may refer to"}},
		"a tenant imports another's":       {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nimport data.extend.rollout.other\nhold contains {} if other.x"}, want: []string{"a.rego:2:8: data.extend.rollout.other is not its own"}},
		"a tenant asks the policies":       {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if data.rollout.holds"}, want: []string{"a.rego:2:21: data.rollout.holds is not its own"}},
		"a tenant computes a reference":    {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if data[input.x][\"y\"]"}, want: []string{"a.rego:2:21: data[input.x].y is not its own"}},
		"a tenant goes through its domain": {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if { some name; data.extend.rollout[name].hold }"}, want: []string{"a.rego:2:34: data.extend.rollout[name].hold is not its own"}},
		"a tenant takes all there is":      {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if some x in data"}, want: []string{"a.rego:2:31: data is not its own"}},
		"a tenant puts it into text":       {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {\"reason\": $\"{data.rollout.plan}\"} if true"}, want: []string{"a.rego:2:29: data.rollout.plan is not its own"}},
		"a tenant pretends":                {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if input.x with data.rollout.plan as 1"}, want: []string{"a.rego:2:34: data.rollout.plan is not its own"}},
		"a tenant adds to another's data":  {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "extend/rollout/other/data.json": `{"exempt": ["shop"]}`}, want: []string{"extend/rollout/other/data.json:1:1: data of a bundle of a namespace must be beside a package of its own; this is at extend/rollout/other/exempt"}},
		"a tenant replaces":                {tenant: true, files: map[string]string{"a.rego": "package override.rollout\nplan := {}"}, want: []string{"a.rego:1:1: package override.rollout: only platform engineers may replace"}},
		"a tenant changes settings":        {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nsettings := {}"}, want: []string{"a.rego:2:1: settings (change a documented knob) is for platform engineers; a bundle of a namespace may have hold, rank"}},
		"a tenant breaks glass":            {tenant: true, files: map[string]string{"a.rego": "package extend.protection.a\nexempt contains {}"}, want: []string{"a.rego:2:1: exempt (break glass) is for platform engineers"}},
		"a tenant injects":                 {tenant: true, files: map[string]string{"a.rego": "package extend.injection.a\nadd := {}"}, want: []string{"a.rego:1:1: package extend.injection.a: a bundle of a namespace may have"}},
	} {
		t.Run(name, func(t *testing.T) {
			var opts []bundle.Option
			if tc.tenant {
				opts = append(opts, bundle.AsTenant("shop"))
			}
			b, err := bundle.FromFiles("own", tc.files, opts...)
			if err != nil {
				t.Fatal(err)
			}
			got := b.CheckContract()
			if len(got) != len(tc.want) {
				t.Fatalf("got\n%v\nwant %q", got, tc.want)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i].String(), want) {
					t.Errorf("got  %s\nwant %s", got[i], want)
				}
			}
		})
	}
}

func TestReadingReportsEveryFile(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"two files that do not parse":        {map[string]string{"a.rego": "package a\nx = {", "b.rego": "packag b"}, []string{"a.rego:2:", "b.rego:1:"}},
		"data that is no object":             {map[string]string{"data.json": "[1]"}, []string{"data.json:1:1: reading data: it is a list, and must be an object"}},
		"data that is no JSON":               {map[string]string{"data.json": "{"}, []string{"data.json:1:1: reading data: unexpected end"}},
		"a number of many digits":            {map[string]string{"x/data.json": `{"a": [1, {"b": 0.` + strings.Repeat("7", 1000) + `}]}`}, []string{"x/data.json:1:1: the data at a/1/b: a number has 1002 digits, and may have 1000"}},
		"data that is there twice":           {map[string]string{"x/data.json": `{"a": 1}`, "x/data.yaml": "a: 2"}, []string{"x/data.yaml:1:1: the data at x/a is there twice"}},
		"data below something else":          {map[string]string{"data.json": `{"x": 1}`, "x/data.json": `{"a": 1}`}, []string{"x/data.json:1:1: the data at x is there twice"}},
		"a manifest that is no JSON":         {map[string]string{".manifest": "{"}, []string{".manifest:1:2: the manifest is wrong: it ends too early"}},
		"a manifest of nothing":              {map[string]string{".manifest": ""}, []string{".manifest:1:1: the manifest is wrong: it is empty"}},
		"a revision that is a number":        {map[string]string{".manifest": "{\n\"revision\": 7}"}, []string{".manifest:2:13: the manifest is wrong: revision is a number, and must be a string"}},
		"data of nothing":                    {map[string]string{"data.json": ""}, []string{"data.json:1:1: reading data: it is empty"}},
		"JSON that is YAML":                  {map[string]string{"data.json": "a: 1"}, []string{"data.json:1:1: reading data: invalid character 'a'"}},
		"a key twice in JSON":                {map[string]string{"data.json": `{"a": 1, "a": 2}`}, []string{`data.json:1:1: reading data: duplicate field "a"`}},
		"a manifest of wasm":                 {map[string]string{".manifest": `{"wasm": [{"module": "/policy.wasm"}]}`}, []string{".manifest:1:1: the manifest is wrong: wasm is not evaluated"}},
		"a manifest of Rego v0":              {map[string]string{".manifest": `{"file_rego_versions": {"/a.rego": 0}}`}, []string{"Rego of version 0 is not read"}},
		"a sequence that is no number":       {map[string]string{".manifest": `{"metadata": {"regatta": {"sequence": "7"}}}`}, []string{"metadata.regatta.sequence must be an integer"}},
		"a sequence that is no integer":      {map[string]string{".manifest": `{"metadata": {"regatta": {"sequence": 1.5}}}`}, []string{"metadata.regatta.sequence must be an integer"}},
		"a sequence below zero":              {map[string]string{".manifest": `{"metadata": {"regatta": {"sequence": -1}}}`}, []string{"metadata.regatta.sequence must be an integer"}},
		"metadata of ours that is no object": {map[string]string{".manifest": `{"metadata": {"regatta": 7}}`}, []string{"metadata.regatta must be an object"}},
		"a key that is there twice":          {map[string]string{"data.yaml": "a: 1\na: 2"}, []string{"data.yaml:2:1: reading data: key \"a\" already set in map"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bundle.FromFiles("own", tc.files)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
		})
	}
}

func TestFromFS(t *testing.T) {
	b, err := bundle.FromFS("own", fstest.MapFS{
		"rollout/plan.rego":      {Data: []byte("package rollout")},
		"rollout/plan_test.rego": {Data: []byte("package rollout_test")},
		"examples/x/x.rego":      {Data: []byte("not rego")},
		".git/x.rego":            {Data: []byte("not rego")},
		"README.md":              {Data: []byte("# x")},
		"lib/data.json":          {Data: []byte(`{"a": 12345678901234567890}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Modules) != 1 || len(b.Tests) != 1 || len(b.Files) != 3 || len(b.Data) != 1 {
		t.Errorf("got %v, %v, %v, %v", b.Modules, b.Tests, b.Files, b.Data)
	}
	big := fstest.MapFS{"a.rego": {Data: bytes.Repeat([]byte(" "), 1<<20+1)}}
	var large bundle.TooLargeError
	if _, err := bundle.FromFS("own", big); !errors.As(err, &large) {
		t.Errorf("a file that is too large was read: %v", err)
	}
}

func TestTheRevisionIsThatOfThePolicy(t *testing.T) {
	of := func(files map[string]string) string {
		b, err := bundle.FromFiles("own", files)
		if err != nil {
			t.Fatal(err)
		}
		return b.Revision
	}
	base := of(map[string]string{"a.rego": "package a", "b.rego": "package b"})
	for name, tc := range map[string]struct {
		files map[string]string
		same  bool
	}{
		"the same files":                {map[string]string{"b.rego": "package b", "/a.rego": "package a"}, true},
		"with a test":                   {map[string]string{"a.rego": "package a", "b.rego": "package b", "a_test.rego": "package a_test"}, true},
		"with another file":             {map[string]string{"a.rego": "package a", "b.rego": "package b", "README.md": "x"}, true},
		"with a changed policy":         {map[string]string{"a.rego": "package a\nx := 1", "b.rego": "package b"}, false},
		"with data":                     {map[string]string{"a.rego": "package a", "b.rego": "package b", "data.json": `{"x": 1}`}, false},
		"with no data, as OPA packs it": {map[string]string{"a.rego": "package a", "b.rego": "package b", "data.json": "{}"}, true},
		"with a manifest":               {map[string]string{"a.rego": "package a", "b.rego": "package b", ".manifest": `{"revision": "7"}`}, true},
	} {
		if got := of(tc.files); (got == base) != tc.same {
			t.Errorf("%s: %s, at first %s", name, got, base)
		}
	}
}

func TestPackAndReadAgain(t *testing.T) {
	b, err := bundle.FromFiles("own", map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "a_test.rego": "package extend.rollout.a_test"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := b.PackArchive(&out); err != nil {
		t.Fatal(err)
	}
	again, err := bundle.FromArchive("own", &out, nil)
	if err != nil || again.Revision != b.Revision || len(again.Tests) != 1 {
		t.Errorf("got %v, %v", again, err)
	}
}

func TestJSONIsReadAsJSON(t *testing.T) {
	long := strings.Repeat("k", 2000) // keys of YAML in braces have 1,024 characters at most
	b, err := bundle.FromFiles("own", map[string]string{"data.json": "{\n\t\"face\": \"\\ud83d\\ude00 \\/\",\n\t\"" + long + "\": 1.50}"})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(b.Data["face"], b.Data[long]); got != "😀 /1.50" {
		t.Errorf("got %s", got)
	}
}

func TestHiddenFilesAreNoPartOfAFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.rego": "package extend.rollout.a", "._a.rego": "\x00\x05\x16\x07", ".manifest": `{"revision": "v1"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("ann@laptop.4711", filepath.Join(dir, ".#a.rego")); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.FromFS("own", os.DirFS(dir))
	if err != nil || len(b.Files) != 2 || b.Manifest.Revision != "v1" {
		t.Errorf("got %v, %v", b, err)
	}
}

// An attacker with two bundles of one revision would have one of them taken for the other,
// so all of the hash counts; people are shown the beginning.
func TestRevisionsAreWholeHashes(t *testing.T) {
	b, err := bundle.FromFiles("x", map[string]string{"x.rego": "package extend.rollout.x"})
	if err != nil {
		t.Fatal(err)
	}
	set := bundle.Set{b}
	for what, revision := range map[string]string{"a bundle": b.Revision, "a set": set.Revision(), "what a set has": set.ContentHash()} {
		if len(revision) != 64 {
			t.Errorf("the revision of %s is %s", what, revision)
		}
	}
	if got, want := bundle.ShortID(b.ID()), "x@"+b.Revision[:12]; got != want || bundle.ShortRevision(b.Revision) != b.Revision[:12] {
		t.Errorf("people are shown %s, want %s", got, want)
	}
	if got := bundle.ShortIDs([]string{"x", "x@123"}); got[0] != "x" || got[1] != "x@123" {
		t.Errorf("got %v", got)
	}
}
