// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/audit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle/lint"
	"github.com/regatta-sh/regatta/engine/bundle/lint/deep"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/rules"
)

var regoBlock = regexp.MustCompile("(?s)```rego\n(.*?)```")

// TestPoliciesOfTheGuideAreGood compiles what the guide shows, and runs its tests.
func TestPoliciesOfTheGuideAreGood(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	modules := builtinModules(t)
	for i, block := range regoBlock.FindAllStringSubmatch(string(text), -1) {
		name := fmt.Sprintf("README.md-%d.rego", i)
		if strings.Contains(block[1], "\ntest_") {
			name = fmt.Sprintf("README.md-%d_test.rego", i)
		}
		modules[name] = parse(t, name, block[1])
	}
	for name, file := range runRego(t, modules, map[string]any{}).Files {
		if strings.HasSuffix(name, "_test.rego") && file.NotCoveredLines > 0 {
			t.Errorf("%s was not run as a whole", name)
		}
	}
}

var (
	consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")
	// What differs from run to run, and the spaces around it.
	varies = regexp.MustCompile(`sha256:[0-9a-f]+(\.\.\.)?| +\d+(\.\d+)?(µs|ms|s)\b *|\b\d+ bytes\b|(?m: +$)`)
)

// TestCommandsOfTheGuidePrintWhatItShows types them, one after the other, in an
// empty folder and with a registry of its own.
func TestCommandsOfTheGuidePrintWhatItShows(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("examples")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.CopyFS("policies/examples", os.DirFS(examples)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	lastHour(t)
	lastMonth(t)
	typed := 0
	for _, block := range consoleBlock.FindAllStringSubmatch(string(text), -1) {
		for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			want = strings.TrimSuffix(want, "\n")
			words := strings.Fields(strings.ReplaceAll(line, "registry.example", host))
			var cmd *cobra.Command
			switch strings.Join(words[:2], " ") {
			case "regatta policy":
				cmd = policy.New(policies.Builtin)
			case "regatta audit":
				cmd = audit.NewCommand(policies.Builtin)
			default:
				keyPair(t) // the machine may have no openssl
				continue
			}
			typed++
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(words[2:])
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out.String())
			}
			got := strings.TrimSuffix(strings.ReplaceAll(out.String(), host, "registry.example"), "\n")
			if a, b := varies.ReplaceAllString(got, "~"), varies.ReplaceAllString(want, "~"); a != b {
				t.Errorf("%s prints\n%s\nand the guide shows\n%s", line, got, want)
			}
		}
	}
	if typed < 10 {
		t.Errorf("the guide shows %d commands only", typed)
	}
}

// lastHour writes last-hour.jsonl: plans of six workloads, two of which have the
// annotation that the guide's policy looks at.
func lastHour(t *testing.T) {
	t.Helper()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	e := rules.EngineWith(t, engine.WithClock(func() time.Time { at = at.Add(5 * time.Minute); return at }))
	var records []decision.Record
	for i, why := range []string{"", "", "audit", "", "audit", ""} {
		w := rollout.Workload{Kind: "CloneSet", Namespace: "shop", Name: fmt.Sprint("web-", i), Replicas: 3}
		if why != "" {
			w.Annotations = map[string]string{"example.com/change-freeze": why}
		}
		_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name},
			rollout.PlanInput{Workload: w, Update: 3, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}})
		records = append(records, r)
	}
	var lines bytes.Buffer
	if err := errors.Join(record.Write(&lines, records), os.WriteFile("last-hour.jsonl", lines.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// lastMonth writes last-month.jsonl: a freeze over two weekends, a workload that nobody approves, and a namespace that may not be deleted.
func lastMonth(t *testing.T) {
	t.Helper()
	var records []decision.Record
	add := func(point decision.Name, day, hour int, name string, out any) {
		records = append(records, decision.Record{
			ID: uint64(len(records) + 1), Time: time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC), Point: point, Outcome: decision.Decided, Output: out,
			Subject: decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: name},
		})
	}
	plan := func(day, hour int, name string, holds ...decision.Hold) {
		add("rollout/plan", day, hour, name, rollout.PlanOutput{Holds: holds})
	}
	freeze := decision.Hold{Rule: "change-freeze.closed", Reason: "ChangeFreeze", Message: "It is the weekend."}
	approve := decision.Hold{Rule: "needs-approval.waits", Reason: "NotApproved", Message: "Nobody has approved it."}
	for _, friday := range []int{6, 13} {
		freeze.Until = time.Date(2026, 11, friday+3, 9, 0, 0, 0, time.UTC).Format(time.RFC3339)
		plan(friday, 17, "web", freeze)
		plan(friday, 18, "cart", freeze)
		plan(friday+3, 9, "web")
		plan(friday+3, 9, "cart")
	}
	plan(10, 12, "search", approve)
	add("protection/deletion", 12, 8, "web", protection.DeletionOutput{Reasons: []decision.Hold{{Rule: "deletion.active", Reason: "ActivePods", Message: "It has pods."}}})
	plan(20, 12, "web")
	var lines bytes.Buffer
	if err := errors.Join(record.Write(&lines, records), os.WriteFile("last-month.jsonl", lines.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// keyPair writes key.pem and key.pub, once.
func keyPair(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("key.pem"); err == nil {
		return
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err1 := x509.MarshalPKCS8PrivateKey(key)
	public, err2 := x509.MarshalPKIXPublicKey(key.Public())
	err = errors.Join(err1, err2,
		os.WriteFile("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
		os.WriteFile("key.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheGuideListsTheRulesOfLint(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, r := range lint.AllRules() {
		rows[r.ID] = r.Meaning
	}
	for _, r := range deep.AllRules() {
		rows[r.ID] = r.Meaning
	}
	for id, meaning := range rows {
		if row := fmt.Sprintf("| `%s` | %s |\n", id, meaning); !strings.Contains(string(text), row) {
			t.Errorf("there is no %s", row)
		}
	}
}
