// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy"
	"github.com/regatta-sh/regatta/policies"
)

// What was mistyped ends with 2, and says which argument, flag or file it is about.
func TestMistakes(t *testing.T) {
	a := newAuthor(t)
	a.keys("key")
	a.keys("other")
	a.write("secret.txt", "a secret that everybody has")
	a.write("empty.txt", "")
	a.write("half/half.rego", half)
	a.write("wrong.jsonl", `{"path": "rollout/plan", "input": {"update": "3"}}`)
	a.write("others.jsonl", `{"path": "authz/allow", "input": {"user": "ann"}}`)
	for _, types := range []string{"build half --sequence 7", "sign bundle.tar.gz --signing-key key.pem -o signed.tar.gz --key-id prod --scope write"} {
		if got, code := a.types(types); code != 0 {
			t.Fatalf("%s: %s", types, got)
		}
	}
	for name, tc := range map[string]struct {
		types string
		code  int
		want  string
	}{
		"nothing to test":                     {"test", 2, "Error: accepts 1 arg(s), received 0; it is policy test FOLDER [flags]\n"},
		"a command that is nearly one":        {"tst half", 2, "did you mean cost or fmt or test?\n"},
		"a command that is none":              {"frobnicate", 2, "; policy --help lists them\n"},
		"a flag that is none":                 {"test half --foo", 2, "Error: unknown flag: --foo; policy test --help lists them\n"},
		"a word for a number":                 {"test half --min much", 2, "Error: --min is \"much\": it must be a number\n"},
		"a word for an integer":               {"build half --sequence x", 2, "Error: --sequence is \"x\": it must be an integer\n"},
		"a number that is too large":          {"build half --sequence 99999999999999999999", 2, "--sequence is \"99999999999999999999\": it is too large\n"},
		"a number that is too small":          {"build half --sequence -1", 2, "Error: --sequence is a number of at least 0\n"},
		"a format that is none":               {"check half -o xml", 2, "Error: --output is \"xml\": it is one of text, json\n"},
		"a format as opa calls it":            {"check half --format json", 0, `"path": "half"`},
		"a mode that is none":                 {"promote half --to Enforced -s http://127.0.0.1:1", 2, "Error: --to is \"Enforced\", want Canary or Enforce\n"},
		"a folder to sign":                    {"sign half --signing-key key.pem", 2, "Error: half is a folder; regatta policy build packs it\n"},
		"a folder to push":                    {"push half REGISTRY/a:v1", 2, "Error: half is a folder"},
		"an algorithm for another key":        {"sign bundle.tar.gz --signing-key key.pem --signing-alg RS256", 2, "Error: --signing-alg: signing: the algorithm is RS256, and for a key like this it is one of ES256\n"},
		"a private key for a secret":          {"sign bundle.tar.gz --signing-key key.pem --signing-alg HS256", 2, "Error: --signing-alg: signing: HS256 signs with a secret, and the key is a PRIVATE KEY\n"},
		"an empty secret":                     {"sign bundle.tar.gz --signing-key empty.txt --signing-alg HS256", 3, "Error: signing: reading the key: it is empty\n"},
		"a private key to verify with":        {"inspect signed.tar.gz --verification-key key.pem", 3, "Error: reading --verification-key: key \"default\": reading the public key: PRIVATE KEY is no public key\n"},
		"an algorithm to verify with":         {"inspect signed.tar.gz --verification-key key.pub --signing-alg RS256", 2, "Error: --signing-alg: key \"default\": the algorithm is RS256"},
		"an id of no key":                     {"inspect signed.tar.gz --verification-key a=key.pub --verification-key-id b", 2, "Error: --verification-key-id: there is no key \"b\"; there is a\n"},
		"a signature by a key that is absent": {"inspect signed.tar.gz --verification-key a=key.pub --verification-key b=other.pub", 1, ".signatures.json: there is no key \"prod\"; there is a, b\n"},
		"a signature for something else":      {"inspect signed.tar.gz --verification-key prod=key.pub --scope read", 1, "it was made for the scope \"write\", and must be for \"read\"\n"},
		"a record of another type":            {"replay --from wrong.jsonl --bundle half", 3, "Error: reading records of wrong.jsonl: reading line 1: the input: update is a string, and must be an integer\n"},
		"records of another program":          {"replay --from others.jsonl --bundle half", 0, "warning: no decision of a point that is asked about was found, so nothing is compared\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, code := a.types(tc.types)
			if code != tc.code || !strings.Contains(got, tc.want) {
				t.Errorf("it ended with %d, want %d\n%s\nwant\n%s", code, tc.code, got, tc.want)
			}
		})
	}
}

// An archive for the standard output is all that is written there.
func TestArchivesThatArePiped(t *testing.T) {
	a := newAuthor(t)
	a.write("half/half.rego", half)
	cmd := policy.New(policies.Builtin)
	var out, told bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&told)
	cmd.SetArgs([]string{"build", "half", "-o", "-"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.write("piped", out.String())
	if got, code := a.types("inspect piped"); code != 0 || !strings.Contains(got, "extend.rollout.half") {
		t.Errorf("%d\n%s", code, got)
	}
	if !strings.HasPrefix(told.String(), "written: revision ") {
		t.Errorf("told %q", told.String())
	}
}

// full is a disk that is.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestWhatCannotBePrinted(t *testing.T) {
	a := newAuthor(t)
	a.write("half/half.rego", half)
	for _, types := range []string{"new x", "check half", "test half", "verify half", "lint half", "lint half -o github", "build half", "inspect half", "fmt half"} {
		cmd := policy.New(policies.Builtin)
		cmd.SetOut(full{})
		cmd.SetErr(&bytes.Buffer{})
		cmd.SetArgs(strings.Fields(types))
		if err := cmd.ExecuteContext(t.Context()); exit.Code(err) != exit.Failed || !strings.Contains(err.Error(), "no space left on device") {
			t.Errorf("%s ends with %d, %v", types, exit.Code(err), err)
		}
	}
}
