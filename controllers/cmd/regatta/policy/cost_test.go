// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/cost"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/policies"
)

// recordedHold is a decision log in which a rule holds a workload from one hour to another.
func recordedHold(t *testing.T, name string, from, to int) []byte {
	t.Helper()
	var records []decision.Record
	for hour, holds := range map[int][]decision.Hold{from: {{Rule: "freeze.closed", Reason: "R", Message: "m"}}, to: nil} {
		records = append(records, decision.Record{
			Time: time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC), Point: "rollout/plan", Outcome: decision.Decided,
			Subject: decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: name}, Output: rollout.PlanOutput{Holds: holds},
		})
	}
	var out bytes.Buffer
	if err := record.Write(&out, records); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestCostOfRules(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.jsonl"), filepath.Join(dir, "two.jsonl")
	for path, text := range map[string][]byte{one: recordedHold(t, "web", 1, 5), two: recordedHold(t, "cart", 2, 4)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		args, stdin, out string
	}{
		"files":                       {args: "--from " + two + "," + one, out: "freeze.closed         0       2     0     2          6.0"},
		"the latest hours":            {args: "--from " + two + "," + one + " --since 2h", out: "freeze.closed         0       2     0     2          3.0"},
		"the standard input":          {args: "--from - --workloads 0", stdin: string(recordedHold(t, "web", 1, 3)), out: "freeze.closed  0       1     0     1          2.0"},
		"none of a namespace":         {args: "--from " + one + " -n bank", out: "no decision was found"},
		"no file":                     {args: "--from " + dir + "/none.jsonl", out: "none.jsonl: no such file"},
		"a file of something else":    {args: "--from -", stdin: "{\"a\": 1}\n", out: "reading line 1: it has no path, so it is no line of a decision log"},
		"a file and the cluster":      {args: "--from " + one + ",cluster", out: "--from is either cluster or files"},
		"a time that is none":         {args: "--from - --since soon", out: "it is a duration of more than 0, such as 36h, or a number of days, such as 30d"},
		"no days":                     {args: "--from - --since 0d", out: "number of days of at least 1"},
		"a time before now":           {args: "--from - --since -3h", out: "duration of more than 0"},
		"a number of workloads below": {args: "--from - --workloads -1", out: "--workloads is a number of at least 0"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := policy.New(policies.Builtin)
			var out bytes.Buffer
			cmd.SetIn(strings.NewReader(tc.stdin))
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(append([]string{"cost"}, strings.Fields(tc.args)...))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				out.WriteString(err.Error())
				if strings.HasPrefix(tc.out, "--") && !errors.As(err, new(exit.Error)) {
					t.Errorf("a misuse ends with %T", err)
				}
			}
			if !strings.Contains(out.String(), tc.out) {
				t.Errorf("got\n%s\nwant %q", out.String(), tc.out)
			}
		})
	}
	cmd := policy.New(policies.Builtin)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"cost", "--from", one, "--since", "30d", "-o", "json"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var report cost.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Rules) != 1 || report.Rules[0].Workloads[0].Name != "web" || report.Rules[0].Hours != 4 {
		t.Errorf("got %v of %s", err, out.String())
	}
}
