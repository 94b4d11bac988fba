// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/regatta-sh/regatta/policies/spec"
)

const root = "../.."

func rules(t *testing.T) map[string]spec.Rule {
	t.Helper()
	out, err := spec.ReadRules(spec.Files)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// eachFile visits the text files of the repository, with paths from its root.
func eachFile(t *testing.T, visit func(path, text string)) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, from := d.Name(), strings.TrimPrefix(filepath.ToSlash(path), root+"/")
		if d.IsDir() {
			// Neither what is built nor what belongs to other programs.
			if path != root && (name == "bin" || name == "_output" || strings.HasPrefix(name, ".") && name != ".github") {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(name) {
		case ".test", ".out", ".prof", ".sum":
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if utf8.Valid(raw) {
			seen++
			visit(from, string(raw))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 500 {
		t.Errorf("the repository has %d text files only", seen)
	}
}

func TestEveryRuleThatIsCitedHasAHeading(t *testing.T) {
	all := rules(t)
	citations := 0
	eachFile(t, func(path, text string) {
		switch path {
		case "policies/spec/spec_test.go", "policies/docs/gen/gen_test.go":
			return // have IDs of no rule
		}
		for _, id := range spec.CitedIDs(text) {
			citations++
			if _, ok := all[id]; !ok {
				t.Errorf("%s cites %s, and no file in policies/spec has \"## %s Title\"", path, id, id)
			}
		}
	})
	if citations < 2*len(all) {
		t.Errorf("%d citations of %d rules: are all files read?", citations, len(all))
	}
}

// TestNothingNamesFilesThatAreNotHere: the repository has all files that it refers
// to. One check of the Makefile runs only where its program is.
func TestNothingNamesFilesThatAreNotHere(t *testing.T) {
	elsewhere := regexp.MustCompile(`(?i)\bdecisions\.` + `md|\bfeatures\.` + `md|\bDESIGN\.` + `md|\bthe ` + `seeds\b|\bseed ` + `?00\d|\.\./` + `shared\b|/work/` + `shared\b`)
	eachFile(t, func(path, text string) {
		for i, line := range strings.Split(text, "\n") {
			if found := elsewhere.FindString(line); found != "" && (path != "Makefile" || !strings.Contains(line, "crd-compat")) {
				t.Errorf("%s:%d names %s", path, i+1, found)
			}
		}
	})
}

func TestTheIndexListsEveryFileAndItsRules(t *testing.T) {
	index, err := fs.ReadFile(spec.Files, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{} // of each prefix
	for id := range rules(t) {
		prefix, number, _ := strings.Cut(id, "-")
		last[prefix] = max(last[prefix], number)
	}
	for prefix, number := range last {
		if !regexp.MustCompile(`\b`+prefix+`-01( to `+prefix+`-`+number+`)?\b[^|]*\|`).Match(index) || !strings.Contains(string(index), prefix+"-"+number) {
			t.Errorf("the index does not say that there are %s-01 to %s-%s", prefix, prefix, number)
		}
	}
	names, err := fs.Glob(spec.Files, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name != "README.md" && !strings.Contains(string(index), "("+name+")") {
			t.Errorf("the index does not list %s", name)
		}
	}
}

func TestRules(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, tc := range []struct {
		name  string
		files fstest.MapFS
		want  string // of rule X-01
		fails string
	}{
		{"a heading is a rule", fstest.MapFS{"x.md": file("# X\n\n## X-01 Which pods go\n\ntext\n")}, "x.md#x-01-which-pods-go", ""},
		{"punctuation is not in anchors", fstest.MapFS{"x.md": file("## X-01 Pods, and `nodes`: all\n")}, "x.md#x-01-pods-and-nodes-all", ""},
		{"a rule twice in a file", fstest.MapFS{"x.md": file("## X-01 One\n## X-01 Two\n")}, "", "x.md:2: rule X-01 is in x.md already"},
		{"a rule in two files", fstest.MapFS{"x.md": file("## X-01 One\n"), "y.md": file("\n## X-01 Two\n")}, "", "y.md:2: rule X-01 is in x.md already"},
		{"a rule without a title", fstest.MapFS{"x.md": file("## X-01\n")}, "", `x.md:1: "## X-01" is not of the form`},
		{"a rule of another level", fstest.MapFS{"x.md": file("### X-01 One\n")}, "", `x.md:1: "### X-01 One" is not of the form`},
		{"a number with one digit", fstest.MapFS{"x.md": file("## X-1 One\n")}, "", `x.md:1: "## X-1 One" is not of the form`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := spec.ReadRules(tc.files)
			if tc.fails != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.fails) {
					t.Errorf("the error is %v, want %s", err, tc.fails)
				}
				return
			}
			if link := got["X-01"].Link(); err != nil || link != tc.want {
				t.Errorf("the link is %q (%v), want %q", link, err, tc.want)
			}
		})
	}
}

func TestLinked(t *testing.T) {
	all := map[string]spec.Rule{"X-01": {ID: "X-01", Title: "One", File: "x.md"}}
	got, err := spec.LinkRules("Pods go (X-01), not UTF-8 or AES-256.", "../spec", all)
	if want := "Pods go ([X-01](../spec/x.md#x-01-one)), not UTF-8 or AES-256."; err != nil || got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	if _, err := spec.LinkRules("X-02", "", all); err == nil || err.Error() != "rule X-02 is not in policies/spec" {
		t.Errorf("the error is %v", err)
	}
}
