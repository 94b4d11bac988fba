// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/regatta-sh/regatta/controllers/simulation"
)

// Each workload of a dump has a bar, over the same time.
func TestSimulateAll(t *testing.T) {
	freeze, err := filepath.Abs("../../../../policies/examples/change-freeze")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	dumped(t)
	text, err := os.ReadFile("fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bare, err := os.ReadFile("next.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"api.yaml":  strings.NewReplacer("web", "api", "node-", "machine-", "namespace: shop", "namespace: pay").Replace(string(text)),
		"job.yaml":  strings.NewReplacer("web", "job", "node-", "host-", "name: main", "name: worker").Replace(string(text)),
		"bare.yaml": strings.ReplaceAll(string(bare), "web", "bare"),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const all = "simulate --fleet fleet.yaml,api.yaml,bare.yaml --all --update main=next:2 "
	for _, tc := range []struct {
		name, line string
		code       int
		want       []string
	}{
		{"all of them", all + "--at 2026-12-21T10:00Z", 0, []string{
			"warning: the fleet has no pods of CloneSet shop/bare", "2 workloads from 2026-12-21T10:00:00Z",
			"CloneSet shop/web  |========================================|  done after 1m30s in 3 waves", "CloneSet pay/api   |====", "|0s                                 1m30s|",
		}},
		{"held by a bundle first", all + "--at 2026-12-20T10:00Z --bundle " + freeze, 0, []string{"CloneSet shop/web  |-----", "by rule change-freeze.closed"}},
		{"one that is named", all + "--at 2026-12-21T10:00Z --name api", 0, []string{"1 workload from", "CloneSet pay/api  |===="}},
		{"one that is stuck", all + "--at 2026-12-21T10:00Z --max-unavailable 1 --fail 1", 1, []string{"stuck after", "CloneSet shop/web: the rollout is stuck"}},
		{"one that cannot be simulated", "simulate --fleet job.yaml,fleet.yaml --all --update main=next:2 --at 2026-12-21T10:00Z", 2, []string{
			"warning: it is not simulated: CloneSet shop/job: --update has", "1 workload from", "CloneSet shop/web  |====", "CloneSet shop/job: --update has"}},
		{"a file that can be read only once", "simulate --fleet once.yaml --all --update main=next:2 --at 2026-12-21T10:00Z", 0, []string{"1 workload from", "CloneSet shop/web  |===="}},
		{"none", "simulate --fleet bare.yaml --all --at 2026-12-21T10:00Z", 2, []string{"--fleet has no workload with pods"}},
		{"no fleet", "simulate --all --at 2026-12-21T10:00Z", 2, []string{"--all is about the workloads of --fleet"}},
		{"a workload that is applied", all + "--at 2026-12-21T10:00Z --workload next.yaml", 2, []string{"--all is about the workloads of --fleet"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if strings.Contains(tc.line, "once.yaml") {
				writePipe(t, "once.yaml", text)
			}
			got, code := exactly(t, tc.line)
			if code != tc.code {
				t.Errorf("it ended with %d, want %d\n%s", code, tc.code, got)
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("it prints\n%s\nwithout %q", got, want)
				}
			}
		})
	}
	got, _ := exactly(t, "simulate --fleet fleet.yaml,api.yaml --all --at 2026-12-21T10:00Z -o json")
	var reports []simulation.Report
	if err := json.Unmarshal([]byte(got), &reports); err != nil || len(reports) != 2 || reports[1].Workload.Name != "api" || reports[1].End.How != simulation.Done {
		t.Errorf("as JSON: %v\n%s", err, got)
	}
}

// writePipe makes a named pipe that gives a text to the first who reads it.
func writePipe(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(name, text, 0o600) }()
}
