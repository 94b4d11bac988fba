// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle/scaffold"
	"github.com/regatta-sh/regatta/engine/decision"
	rolloutpoints "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/rules"
)

// author is a user at a prompt, in a folder, with the built-in policies.
type author struct {
	t    *testing.T
	vary *strings.Replacer // what differs from run to run, by what represents it
}

func newAuthor(t *testing.T) author {
	t.Helper()
	t.Chdir(t.TempDir())
	registry := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(registry.Close)
	return author{t, strings.NewReplacer("REGISTRY", strings.TrimPrefix(registry.URL, "http://"))}
}

func (a author) write(file, text string) {
	a.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// types runs a command and returns what it prints, its error and its code, with
// what varies taken out.
func (a author) types(line string) (string, int) {
	a.t.Helper()
	cmd := policy.New(policies.Builtin)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage = true
	cmd.SetArgs(strings.Fields(a.vary.Replace(line)))
	code := exit.Code(cmd.ExecuteContext(a.t.Context()))
	text := out.String()
	for _, x := range []struct{ pattern, with string }{
		{`127\.0\.0\.1:\d+`, "REGISTRY"}, {`sha256:[0-9a-f]{64}`, "sha256:..."}, {`\b[0-9a-f]{12}\b`, "HASH"},
		{` +\d+(\.\d+)?(µs|ms|s)\b *`, " TIME "}, {`\b\d+ bytes\b`, "N bytes"}, {`(?m) +$`, ""},
	} {
		text = regexp.MustCompile(x.pattern).ReplaceAllString(text, x.with)
	}
	return text, code
}

func (a author) keys(name string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	a.write(name+".pub", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
}

// TestFromNewToPull is the way of a policy, as its author types it.
func TestFromNewToPull(t *testing.T) {
	a := newAuthor(t)
	a.keys("key")
	a.keys("other")
	a.write("secret.txt", "a secret that everybody has")
	for _, step := range []struct {
		types string
		code  int
		want  string
	}{
		{"new change-freeze --domain rollout --rule hold", 0, "change-freeze/README.md\nchange-freeze/cases/change-freeze.yaml\nchange-freeze/change-freeze.rego\nchange-freeze/change-freeze_test.rego\n"},
		{"new change-freeze", 3, "Error: change-freeze is there already\n"},
		{"fmt --check change-freeze", 0, ""},
		{"lint change-freeze", 0, ""},
		{"test --min 90 change-freeze", 0, "2 of 2 tests passed, 2 cases run\ncoverage: 100.0 % of 7 lines\n"},
		{"verify change-freeze", 0, `fetched   ok TIME 2 files, content HASH
packages  ok TIME 1 package
compile   ok TIME
schemas   ok TIME
types     ok TIME
tests     ok TIME 2 tests
replay    ok TIME 0 decisions, 0 with another answer
change-freeze may become active
`},
		{"build change-freeze --revision v1 --sequence 7", 0, "bundle.tar.gz: revision v1, 2 files, N bytes, sha256:...\n"},
		{"sign bundle.tar.gz --signing-key key.pem --key-id shop --scope prod", 0, "bundle.tar.gz: revision v1, 2 files, N bytes, sha256:...\n"},
		{"inspect bundle.tar.gz --verification-key key.pub --scope prod --verification-key-id default", 0, `Name:       bundle
Revision:   v1
Content:    HASH
Sequence:   7
Roots:      extend/rollout/change_freeze
Signature:  ES256 over 2 files, key shop, scope prod, verified
Size:       N bytes in 2 files, 0 of tests
Packages:
  extend.rollout.change_freeze  extends with hold
Files:
  .manifest           N bytes
  change-freeze.rego  N bytes
`},
		{"push bundle.tar.gz REGISTRY/shop/freeze:v1 --insecure", 0, "REGISTRY/shop/freeze@sha256:...\n"},
		{"pull REGISTRY/shop/freeze:v1 --insecure -o pulled.tar.gz --verification-key shop=key.pub --scope prod", 0, "pulled.tar.gz: revision v1, 2 files, N bytes, sha256:...\nREGISTRY/shop/freeze@sha256:...\n"},
		{"verify pulled.tar.gz --verification-key shop=key.pub --scope prod", 0, `fetched   ok TIME 2 files, content HASH
verified  ok TIME ES256 over 2 files, key shop, scope prod, verified
packages  ok TIME 1 package
compile   ok TIME
schemas   ok TIME
types     ok TIME
tests     ok TIME 0 tests
replay    ok TIME 0 decisions, 0 with another answer
pulled.tar.gz may become active
`},

		{"verify pulled.tar.gz --verification-key other.pub --verification-key-id default --scope prod", 1, `fetched   ok TIME
verified  refused TIME 1 problem
  pulled.tar.gz:1:1: verifying the signature: .signatures.json: it was not made with the key "default", or was changed since: failed to verify JWT signature: invalid ECDSA signature
Error: the policies are refused
`},
		{"pull REGISTRY/shop/freeze:v1 --insecure -o bad.tar.gz --verification-key shop=other.pub --scope prod", 1, "Error: reading bundle REGISTRY/shop/freeze@sha256:...: verifying the signature: .signatures.json: it was not made with the key \"shop\", or was changed since: failed to verify JWT signature: invalid ECDSA signature\n"},
		{"inspect bad.tar.gz", 3, "Error: reading bundle: stat bad.tar.gz: no such file or directory\n"},
		{"verify change-freeze --verification-key key.pub", 2, "Error: change-freeze is no .tar.gz file, and only those are signed\n"},
		{"sign bundle.tar.gz --signing-key secret.txt --signing-alg HS256 -o secret.tar.gz", 0, "secret.tar.gz: revision v1, 2 files, N bytes, sha256:...\n"},
		{"inspect secret.tar.gz --verification-key secret.txt --signing-alg HS256 -o json", 0, ""},
		{"inspect secret.tar.gz --verification-key secret.txt -o json", 2, "Error: --signing-alg: key \"default\": the key is not PEM; a secret needs an algorithm, such as HS256\n"},
		{"build change-freeze --sequence 6 -o older/bundle.tar.gz", 3, "Error: writing the bundle: open older/bundle.tar.gz: no such file or directory\n"},
		{"sign bundle.tar.gz", 2, "Error: name the file of a private key or a secret with --signing-key\n"},
		{"sign bundle.tar.gz --signing-key none.pem", 3, "Error: reading the key: stat none.pem: no such file or directory\n"},
		{"push bundle.tar.gz UPPER/x --insecure", 2, ""},
		{"inspect change-freeze -o xml", 2, ""},
		{"inspect change-freeze --scope prod", 2, "Error: name a key with --verification-key; without one nothing is verified\n"},
		{"new Change_Freeze", 2, "Error: the name \"Change_Freeze\" is none: small letters, digits and dashes, such as change-freeze\n"},
		{"new x --domain rollout --rule deny", 2, "Error: there is nothing to start rollout deny from; there is rollout hold, rollout rank, protection deny, protection guard, protection exempt, injection skip, injection add, node hold, node deny, node rank, placement hold, placement deny, placement rank\n"},
		{"frobnicate", 2, ""},
	} {
		got, code := a.types(step.types)
		if code != step.code || step.want != got && (step.want != "" || code == 0 && got != "" && !strings.Contains(step.types, "json")) {
			t.Fatalf("%s ended with %d, want %d\n%s\nwant\n%s", step.types, code, step.code, got, step.want)
		}
	}
}

func TestWhatNewMakesIsGood(t *testing.T) {
	for _, k := range scaffold.AllKinds() {
		t.Run(k.Domain+" "+k.Rule, func(t *testing.T) {
			a := newAuthor(t)
			for _, line := range []string{
				"new x-1 --domain " + k.Domain + " --rule " + k.Rule, "fmt --check x-1", "lint x-1", "test --min 100 x-1", "verify x-1",
				"build x-1 --with-tests", "verify bundle.tar.gz", "lint bundle.tar.gz",
			} {
				if out, code := a.types(line); code != 0 {
					t.Errorf("%s ended with %d\n%s", line, code, out)
				}
			}
		})
	}
}

func TestASequenceThatFallsIsRefused(t *testing.T) {
	a := newAuthor(t)
	for _, line := range []string{"new freeze", "build freeze --sequence 7 -o freeze.tar.gz", "new old/freeze"} {
		a.types(line)
	}
	a.types("build freeze --sequence 6 -o 6.tar.gz")
	if err := os.MkdirAll("active", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename("freeze.tar.gz", "active/freeze.tar.gz"), os.Rename("6.tar.gz", "freeze.tar.gz")); err != nil {
		t.Fatal(err)
	}
	got, code := a.types("verify freeze.tar.gz --active active/freeze.tar.gz")
	if want := "  freeze.tar.gz:1:1: bundle freeze has the sequence 6, which is lower than 7 of the active one\n"; code != 1 || !strings.Contains(got, want) {
		t.Errorf("it ended with %d\n%s", code, got)
	}
	if got, code := a.types("verify active/freeze.tar.gz --active freeze.tar.gz"); code != 0 {
		t.Errorf("the newer one ended with %d\n%s", code, got)
	}
}

func TestTwoBuildsOfAFolderAreTheSame(t *testing.T) {
	a := newAuthor(t)
	a.types("new freeze")
	first, _ := os.ReadFile("freeze/freeze.rego")
	a.types("build freeze -o 1.tar.gz")
	a.write("again/freeze.rego", string(first)) // another folder, other times, without the test
	a.types("build again -o 2.tar.gz")
	one, err1 := os.ReadFile("1.tar.gz")
	two, err2 := os.ReadFile("2.tar.gz")
	if err1 != nil || err2 != nil || !bytes.Equal(one, two) {
		t.Errorf("they differ: %v, %v", err1, err2)
	}
}

const slow = `package extend.rollout.slow

rank[pod.name] := 1 if {
	some pod in input.pods
	not pod.node == sprintf("n-%s", [pod.zone])
}
`

func TestFindings(t *testing.T) {
	for name, tc := range map[string]struct {
		types string
		code  int
		want  string
	}{
		"lint as text": {"lint slow", 1, `slow/slow.rego:1:1: missing-tests: write a test in slow_test.rego: what it says of an input where it holds, and of one where it does not
slow/slow.rego:3:1: missing-metadata: write a comment ` + "`# METADATA`" + ` with title, description, labels.id above rank: that is what explanations show
slow/slow.rego:3:1: pod-object: write one comprehension, rank := {pod.name: 1 | some pod in input.pods; ...}, instead of a key for each pod
slow/slow.rego:5:2: not-import: write ` + "`import future.keywords.not`" + ` below the package, so that ` + "`not`" + ` is true in every tool where what it negates is undefined
slow/slow.rego:5:18: pod-text: sprintf is evaluated for each pod: compare facts as they are, or make the text once, outside
Error: there is something to change
`},
		"lint for GitHub":                        {"lint slow -o github", 1, "::error file=slow/slow.rego,line=5,col=18,title=pod-text::sprintf is evaluated for each pod: compare facts as they are, or make the text once, outside\n"},
		"lint as SARIF":                          {"lint slow -o sarif", 1, `"ruleId": "pod-text"`},
		"lint as JSON":                           {"lint slow -o json", 1, `"rule": "pod-text"`},
		"lint of what is not there":              {"lint none", 3, "no such file"},
		"lint of what is no Rego":                {"lint broken", 1, "broken/x.rego:1:1"},
		"verify for GitHub":                      {"verify wrong -o github", 1, "::error file=wrong/x.rego,line=3,col=21,title=schemas::rego_type_error"},
		"verify as JSON":                         {"verify wrong -o json", 1, `"refused": "schemas"`},
		"verify of what is no Rego":              {"verify broken", 1, "fetched   refused TIME "},
		"verify with records that are not there": {"verify slow --records none", 3, "reading records"},
		"verify with records that are none":      {"verify slow --records wrong/x.rego", 3, "Error:"},
		"verify in a namespace":                  {"verify other -n shop", 1, "packages  refused TIME 1 problem\n  other/x.rego:1:1: package override.rollout: only platform engineers"},
		"fmt --check":                            {"fmt --check ugly", 1, "ugly/x.rego\nError: some files are not formatted"},
		"fmt":                                    {"fmt ugly", 0, "package extend.rollout.x\n\nimport future.keywords.not\n\nx if not input.y\n"},
		"fmt of what is no Rego":                 {"fmt broken", 1, "Error: formatting: broken/x.rego:1:1: rego_parse_error"},
		"fmt -w":                                 {"fmt -w ugly", 0, "ugly/x.rego\n"},
		"build of nothing":                       {"build empty", 1, "Error: empty has no policy"},
		"build of what is no Rego":               {"build broken", 1, "broken/x.rego:1:1"},
		"check of what is no Rego":               {"check broken", 1, "broken/x.rego:1:1"},
		"check of nothing":                       {"check none", 3, "no such file"},
		"test of nothing":                        {"test none", 3, "no such file"},
		"a point that is not there":              {"eval rollout/pln", 2, "there is no decision point rollout/pln"},
		"a question without answer":              {"eval rollout/plan -i question.yaml -b broken", 1, "broken/x.rego:1:1"},
		"inspect as JSON": {"inspect other -o json", 0, `"packages": [
    {
      "name": "override.rollout",
      "overrides": [
        "rollout/plan"
      ],
      "platformOnly": true
    }
  ]`},
		"fmt both ways": {"fmt -w --check ugly", 2, "none of the others can be"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthor(t)
			a.write("slow/slow.rego", slow)
			a.write("broken/x.rego", "packag x")
			a.write("wrong/x.rego", "package extend.rollout.x\n\nhold contains {} if input.nope")
			a.write("other/x.rego", "package override.rollout\n\nplan := {}")
			a.write("empty/README.md", "# Nothing")
			a.write("question.yaml", "update: 3")
			a.write("ugly/x.rego", "package extend.rollout.x\nimport future.keywords.not\nx   if  not   input.y")
			got, code := a.types(tc.types)
			if code != tc.code || !strings.Contains(got, tc.want) {
				t.Errorf("it ended with %d, want %d\n%s\nwant\n%s", code, tc.code, got, tc.want)
			}
			if tc.types == "fmt -w ugly" {
				if out, code := a.types("fmt --check ugly"); code != 0 || out != "" {
					t.Errorf("it is not formatted then: %d %s", code, out)
				}
			}
			if strings.HasSuffix(tc.types, "json") || strings.HasSuffix(tc.types, "sarif") {
				text, _, _ := strings.Cut(got, "\nError:")
				if !json.Valid([]byte(text)) {
					t.Errorf("it is no JSON\n%s", text)
				}
			}
		})
	}
}

func TestVerifyMakesDecisionsAgain(t *testing.T) {
	a := newAuthor(t)
	e := rules.Engine(t, "")
	var records []decision.Record
	for n := range 3 {
		_, r := engine.Decide(t.Context(), e, rolloutpoints.PlanPoint(), decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, rolloutpoints.PlanInput{Update: n, MaxUnavailable: 1})
		records = append(records, r)
	}
	var lines bytes.Buffer
	if err := record.Write(&lines, records); err != nil {
		t.Fatal(err)
	}
	a.write("records.jsonl", lines.String())
	a.write("held/x.rego", "package extend.rollout.x\n\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if input.update > 1\n")
	a.write("fails/x.rego", "package extend.rollout.x\n\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if to_number(input.workload.name) > 1\n")
	if got, code := a.types("verify held --records records.jsonl"); code != 0 || !strings.Contains(got, "replay    ok TIME 3 decisions, 1 with another answer\n") {
		t.Errorf("it ended with %d\n%s", code, got)
	}
	if got, code := a.types("verify fails --records records.jsonl"); code != 1 || !strings.Contains(got, "replay    refused TIME 3 problems\n  fails:1:1: rollout/plan of CloneSet shop/web, which was decided, would be without a decision (Error)") {
		t.Errorf("it ended with %d\n%s", code, got)
	}
}

// TestCredentialsAreThoseOfDocker logs in by the file that docker login writes.
func TestCredentialsAreThoseOfDocker(t *testing.T) {
	a := newAuthor(t)
	registry := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "pw" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		registry.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	a.types("new freeze")
	a.types("build freeze")
	if got, code := a.types("push bundle.tar.gz " + host + "/x:v1 --insecure"); code != 3 {
		t.Errorf("without credentials it ended with %d\n%s", code, got)
	}
	a.write(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), `{"auths": {"`+host+`": {"username": "ann", "password": "pw"}}}`)
	for _, line := range []string{"push bundle.tar.gz " + host + "/x:v1 --insecure", "pull " + host + "/x:v1 --insecure"} {
		if got, code := a.types(line); code != 0 {
			t.Errorf("%s ended with %d\n%s", line, code, got)
		}
	}
}
