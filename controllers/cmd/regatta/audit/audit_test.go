// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/audit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/policies"
)

const freeze = `package extend.rollout.freeze

hold contains {"rule": "freeze.closed", "reason": "Closed", "message": "Closed."} if input.update > 1
`

// writeFile writes a file into the folder, and returns its path.
func writeFile(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeLog writes the log of four decisions with a bundle, the first two of which are of one hour, and the others of the next.
func writeLog(t *testing.T, dir, bundlePath string) {
	t.Helper()
	builtin, err := bundle.ReadBuiltin(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(bundlePath)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.FromFiles("freeze", map[string]string{"freeze.rego": string(text)})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	e, err := engine.FromBundle(builtin, engine.WithClock(func() time.Time { return at }), engine.WithPatience(20))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	var records []decision.Record
	for n := range 4 {
		_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: fmt.Sprint("web-", n)},
			rollout.PlanInput{Update: n, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}})
		r.Origin = "manager"
		records = append(records, r)
		at = at.Add(30 * time.Minute)
	}
	var log bytes.Buffer
	if err := record.Write(&log, records); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "log.jsonl", log.Bytes())
}

// writeKeys writes a private key, its public one, and the public one of another.
func writeKeys(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"audit", "other"} {
		public, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		der, err2 := x509.MarshalPKIXPublicKey(public)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, name+".pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
		writeFile(t, dir, name+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
}

func TestEvidenceIsExportedAndVerified(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	writeLog(t, dir, writeFile(t, dir, "freeze.rego", []byte(freeze)))
	writeKeys(t, dir)
	for _, step := range []struct {
		line string
		code int
		want []string
	}{
		{"export --from log.jsonl --until 2026-12-01T10:00:00Z --bundle freeze.rego --signing-key audit.pem --key-id audit -o first.tar.gz", 0,
			[]string{"first.tar.gz has 2 decisions in 1 hour, between 2026-12-01 09:00 and 2026-12-01 10:00 UTC, and 2 bundles\n", "its last link is sha256:"}},
		{"export --from log.jsonl --since 2026-12-01T10:00:00Z --bundle freeze.rego --signing-key audit.pem --key-id audit --after first.tar.gz -o second.tar.gz", 0,
			[]string{"second.tar.gz has 2 decisions in 1 hour"}},
		{"verify first.tar.gz second.tar.gz --verification-key audit=audit.pub", 0, []string{
			"first.tar.gz has 2 decisions, between 2026-12-01 09:00 and 2026-12-01 10:00 UTC\n", "files      as they were exported: 1 hour, 2 bundles\n", "chain      its beginning to ",
			"signature  valid, EdDSA, key audit\n", "decisions  2 the same when made again\n", "second.tar.gz has 2 decisions",
		}},
		{"verify first.tar.gz -o json --verification-key audit=audit.pub", 0, []string{`"archive": "first.tar.gz"`, `"same": 2`, `"verified": true`}},
		{"verify second.tar.gz first.tar.gz --verification-key audit=audit.pub", 1, []string{"first.tar.gz: it does not follow on second.tar.gz: an archive is missing between them"}},
		{"verify first.tar.gz --verification-key audit=other.pub", 1, []string{"verifying first.tar.gz: verifying the signature", "was not made with the key"}},
		{"verify first.tar.gz", 0, []string{"signature  not verified, EdDSA, key audit: name a key with --verification-key"}},
		{"verify log.jsonl", 1, []string{"verifying log.jsonl: the file is no .tar.gz file"}},
		{"verify none.tar.gz", 3, []string{"none.tar.gz: no such file"}},
		{"verify", 2, []string{"requires at least 1 arg"}},

		{"export --from log.jsonl -o unsigned.tar.gz", 0, []string{
			"warning: bundle freeze@", "is missing, so its decisions cannot be made again; name it with --bundle", "warning: the archive is not signed",
		}},
		{"verify unsigned.tar.gz", 1, []string{
			"signature  none: a holder of the archive could have made another one", "files      as the manifest says: 2 hours, 1 bundle\n", "decisions  0 the same when made again, 4 without their bundles", "without freeze@",
			"unsigned.tar.gz: 4 need bundles that are missing or do not compile",
		}},
		{"export --from log.jsonl --since 2026-12-02 -o none.tar.gz", 3, []string{"no decision was found, so nothing is exported; with --since and --until an archive shows that there was none"}},
		{"export --from log.jsonl --since soon -o x.tar.gz", 2, []string{"it is a time such as 2026-12-01T10:00:00Z"}},
		{"export --from log.jsonl --since 2026-12-02 --until 2026-12-01 -o x.tar.gz", 2, []string{"--until is not after --since"}},
		{"export --from log.jsonl,cluster -o x.tar.gz", 2, []string{"--from is either cluster or files"}},
		{"export --from log.jsonl --key-id a -o x.tar.gz", 2, []string{"--signing-alg, --key-id and --scope go with --signing-key"}},
		{"export --from log.jsonl --signing-key audit.pem --signing-alg RS256 -o x.tar.gz", 2, []string{"--signing-alg: "}},
		{"export --from log.jsonl --after log.jsonl -o x.tar.gz", 1, []string{"reading the archive before: log.jsonl: the file is no .tar.gz file"}},
		{"export --from freeze.rego -o x.tar.gz", 3, []string{"reading decisions of freeze.rego: reading line 1"}},
		{"export --from log.jsonl", 2, []string{`required flag(s) "output" not set`}},
	} {
		var out bytes.Buffer
		cmd := audit.NewCommand(policies.Builtin)
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(strings.Fields(step.line))
		if code := exit.Code(cmd.ExecuteContext(t.Context())); code != step.code {
			t.Errorf("%s: ended with %d, want %d:\n%s", step.line, code, step.code, &out)
		}
		for _, want := range step.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: printed\n%s\nwithout %q", step.line, &out, want)
			}
		}
	}
}

func TestADecisionThatDoesNotFollowIsPrinted(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	writeLog(t, dir, writeFile(t, dir, "freeze.rego", []byte(freeze)))
	text, err := os.ReadFile("log.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines[2] = bytes.Replace(lines[2], []byte(`"update":2`), []byte(`"update":1`), 1)
	writeFile(t, dir, "log.jsonl", bytes.Join(lines, nil))
	var out bytes.Buffer
	for _, line := range []string{"export --from log.jsonl --bundle freeze.rego -o a.tar.gz", "verify a.tar.gz"} {
		cmd := audit.NewCommand(policies.Builtin)
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(strings.Fields(line))
		err = cmd.ExecuteContext(t.Context())
	}
	if exit.Code(err) != exit.Refused || !strings.Contains(err.Error(), "a.tar.gz: 1 have another answer than recorded") {
		t.Errorf("it ended with %v", err)
	}
	if want := "    decision manager-3, rollout/plan of CloneSet shop/web-2: recorded Hold, made again Go (other "; !strings.Contains(out.String(), want) {
		t.Errorf("printed\n%s\nwithout %q", &out, want)
	}
}
