// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/rules"
)

func flagsOf(t *testing.T, args ...string) *DecisionLogs {
	t.Helper()
	fs, logs := pflag.NewFlagSet("manager", pflag.ContinueOnError), &DecisionLogs{}
	logs.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return logs
}

// TestDecisionsAreLoggedEverywhere makes decisions with the sinks that the flags
// ask for, and closes them as a Host does at its end.
func TestDecisionsAreLoggedEverywhere(t *testing.T) {
	var posted []map[string]any
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		zip, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		if err := json.NewDecoder(zip).Decode(&posted); err != nil || r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("X-A") != "b, c" {
			t.Errorf("%v, %v", r.Header, err)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	token, file := filepath.Join(dir, "token"), filepath.Join(dir, "decisions.log")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	everywhere := []string{
		"--decision-log-stdout", "--decision-log-file=" + file, "--decision-log-url=" + server.URL, "--decision-log-token-file=" + token, "--decision-log-ca-file=" + ca,
		`--decision-log-header="X-A=b, c"`, "--decision-log-points=rollout/plan", "--decision-log-interval=1h",
	}
	for name, tc := range map[string]struct {
		arg, want string
	}{
		"masked":               {"--decision-log-mask=/input/workload/labels/team", "[masked] [masked]"},
		"unmasked when wanted": {"--decision-log-unmasked", "hunter2 a"},
	} {
		t.Run(name, func(t *testing.T) {
			posted = nil
			_ = os.Remove(file)
			o := flagsOf(t, append(everywhere, tc.arg)...)
			if err := o.ValidateFlags(); err != nil {
				t.Fatal(err)
			}
			asked, logged, err := o.newEncoders("manager-x")
			if err != nil {
				t.Fatal(err)
			}
			var stdout bytes.Buffer
			logs, err := o.openSinks(logged, &stdout)
			if err != nil {
				t.Fatal(err)
			}
			eng := rules.EngineWith(t, logs.engineOptions()...)
			in := rollout.PlanInput{Workload: rollout.Workload{Annotations: map[string]string{"password": "hunter2"}, Labels: map[string]string{"team": "a"}}}
			_, rec := engine.Decide(t.Context(), eng, rollout.PlanPoint(), decision.Subject{Name: "web"}, in)
			engine.Decide(t.Context(), eng, rollout.ChangePoint(), decision.Subject{Name: "web"}, rollout.ChangeInput{})
			if err := logs.closeAll(); err != nil {
				t.Fatal(err)
			}
			want := func(where, text string) {
				t.Helper()
				var event struct {
					Labels map[string]string
					Input  rollout.PlanInput
				}
				if err := json.Unmarshal([]byte(text), &event); err != nil {
					t.Fatalf("%s has %q: %v", where, text, err)
				}
				w := event.Input.Workload
				if w.Annotations["password"]+" "+w.Labels["team"] != tc.want || event.Labels["replica"] != "manager-x" {
					t.Errorf("%s has %s", where, text)
				}
			}
			want("the standard output", stdout.String())
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want("the file", string(text))
			if len(posted) != 1 {
				t.Fatalf("the server has %v", posted)
			}
			text, _ = json.Marshal(posted[0])
			want("the server", string(text))
			if line, err := asked.AppendLine(nil, rec); err != nil || strings.Contains(string(line), "hunter2") {
				t.Errorf("the answer to a caller is %s, %v", line, err)
			}
		})
	}
}

func TestLogsThatCannotBeOpened(t *testing.T) {
	o := flagsOf(t, "--decision-log-file="+filepath.Join(t.TempDir(), "no", "file"))
	_, logged, err := o.newEncoders("x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.openSinks(logged, io.Discard); err == nil || !strings.Contains(err.Error(), "--decision-log-file") {
		t.Errorf("%v", err)
	}
	for what, text := range map[string]string{"no such file": "", "has none in PEM": "-----BEGIN CERTIFICATE-----"} {
		ca := filepath.Join(t.TempDir(), "ca.crt")
		if text != "" {
			if err := os.WriteFile(ca, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		o := flagsOf(t, "--decision-log-url=https://logs.example.com/logs", "--decision-log-ca-file="+ca)
		if err := o.ValidateFlags(); err != nil {
			t.Fatal(err)
		}
		if _, err := o.openSinks(logged, io.Discard); err == nil || !strings.Contains(err.Error(), "--decision-log-ca-file: ") || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
