// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
)

// packs makes an archive of one file, which need not be one that a bundle may
// have.
func (a author) packs(archive string, h tar.Header, text string) {
	a.t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	h.Size, h.Mode = int64(len(text)), 0o644
	if err := w.WriteHeader(&h); err != nil {
		a.t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		a.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		a.t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		a.t.Fatal(err)
	}
	a.write(archive, out.String())
}

func TestWhatIsNoBundle(t *testing.T) {
	for name, tc := range map[string]struct {
		types string
		code  int
		want  string
	}{
		"a file of another kind":                {"verify notes.txt", 2, "Error: notes.txt is no bundle: want a folder, a .tar.gz file or a .rego file\n"},
		"a file of another kind, linted":        {"lint notes.txt", 2, "Error: notes.txt is no bundle"},
		"an archive by another name":            {"inspect packed.bin", 0, "extend.rollout.half  extends with hold, rank"},
		"an archive by its short name":          {"inspect packed.tgz", 0, "Name:       packed\n"},
		"an archive that is text":               {"verify text.tar.gz", 1, "fetched   refused TIME 1 problem\n  text.tar.gz:1:1: unpacking: the file is no .tar.gz file: gzip: invalid header\n"},
		"an archive of nothing":                 {"verify nothing.tar.gz", 1, "nothing.tar.gz:1:1: unpacking: the file is empty\n"},
		"an archive of a link":                  {"verify link.tar.gz -o github", 1, "::error file=link.tar.gz,line=1,col=1,title=fetched::unpacking: a.rego is a link or a device"},
		"a way out of the folder":               {"verify out.tar.gz -o sarif", 1, `"text": "unpacking: \"../../a.rego\" is outside of the bundle`},
		"compiled policy":                       {"verify wasm.tar.gz -o json", 1, `"message": "unpacking: policy.wasm is compiled policy`},
		"a delta bundle":                        {"inspect delta.tar.gz", 1, "unpacking: patch.json makes this a delta bundle; ship the whole bundle"},
		"a policy that does not parse":          {"test broken", 1, "broken/a.rego:1:1: rego_parse_error: package expected\n0 of 0 tests passed, 0 cases run\nError: tests failed\n"},
		"the same as JUnit":                     {"test broken -o junit", 1, `<testcase classname="broken" name="fetched" time="0.000">` + "\n" + `      <failure message="broken/a.rego:1:1: rego_parse_error: package expected">`},
		"the same as JSON":                      {"test broken -o json", 1, `"refused": "fetched",`},
		"the same, linted":                      {"lint broken", 1, "broken/a.rego:1:1: invalid: rego_parse_error: package expected\nError: there is something to change\n"},
		"the same, linted for a code scanner":   {"lint half broken -o sarif", 1, `"ruleId": "invalid",`},
		"the same, linted beside another":       {"lint broken half -o github", 1, "::error file=half/half.rego,line=3,col=1,title=missing-metadata"},
		"data that is no object":                {"verify data", 1, "data/data.json:1:1: reading data: it is a list, and must be an object\n"},
		"cases that cannot be read":             {"test cases", 1, "cases/cases/x.yaml:2:1: reading the cases: did not find expected node content\ncases/cases/y.yaml:1:9: it goes: limit is 1, want 2\n0 of 0 tests passed, 2 cases run\n"},
		"cases that cannot be read, as JUnit":   {"test cases -o junit", 1, `<testcase classname="cases/cases/x.yaml" name="reading the cases" file="cases/cases/x.yaml">`},
		"an archive that is too large to build": {"build large", 1, "a.rego is too large"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthor(t)
			a.write("notes.txt", "package extend.rollout.a\n")
			a.write("half/half.rego", half)
			a.write("text.tar.gz", "hello, this is text")
			a.write("nothing.tar.gz", "")
			a.packs("packed.bin", tar.Header{Name: "half.rego"}, half)
			a.packs("packed.tgz", tar.Header{Name: "half.rego"}, half)
			a.packs("link.tar.gz", tar.Header{Name: "a.rego", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, "")
			a.packs("out.tar.gz", tar.Header{Name: "../../a.rego"}, half)
			a.packs("wasm.tar.gz", tar.Header{Name: "/policy.wasm"}, "x")
			a.packs("delta.tar.gz", tar.Header{Name: "/patch.json"}, "{}")
			a.write("broken/a.rego", "nope")
			a.write("data/data.json", "[]")
			a.write("large/a.rego", strings.Repeat("#", 2<<20))
			a.write("cases/a.rego", half)
			a.write("cases/cases/x.yaml", "cases:\n- [")
			a.write("cases/cases/y.yaml", "cases: [{name: it goes, point: rollout/plan, input: {update: 1, maxUnavailable: 1, strategy: {type: RollingUpdate}}, want: {limit: 2}}]")
			got, code := a.types(tc.types)
			if code != tc.code || !strings.Contains(got, tc.want) {
				t.Errorf("it ended with %d, want %d\n%s\nwant\n%s", code, tc.code, got, tc.want)
			}
			text, _, _ := strings.Cut(got, "Error:")
			switch {
			case strings.HasSuffix(tc.types, "junit"):
				if err := xml.Unmarshal([]byte(text), new(struct{ XMLName xml.Name })); err != nil {
					t.Errorf("it is no XML: %v\n%s", err, text)
				}
			case strings.HasSuffix(tc.types, "json"), strings.HasSuffix(tc.types, "sarif"):
				if !json.Valid([]byte(text)) {
					t.Errorf("it is no JSON:\n%s", text)
				}
			}
		})
	}
}

// A tenant's rules are heard about its own namespace, also in its cases.
func TestCasesOfATenant(t *testing.T) {
	a := newAuthor(t)
	a.write("half/half.rego", half)
	a.write("half/cases/x.yaml", "cases: [{name: it is held, point: rollout/plan, input: {update: 6, maxUnavailable: 1, strategy: {type: RollingUpdate}}, want: {holds: [{reason: R, message: m, rule: extend.rollout.half}]}}]")
	for _, types := range []string{"test half", "test half -n shop"} {
		if got, code := a.types(types); code != 0 {
			t.Errorf("%s:\n%s", types, got)
		}
	}
}
