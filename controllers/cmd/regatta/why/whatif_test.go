// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// heldReason is the reason of a rule, with its place.
func heldReason(rule string, change func(*record.Reason)) record.Reason {
	r := record.Reason{Hold: decision.Hold{Rule: rule, Reason: "Held", Message: "It waits."}, Title: "The title", Bundle: "near@1a2b3c", Place: "near.rego:3:1"}
	if change != nil {
		change(&r)
	}
	return r
}

func TestWhatIfText(t *testing.T) {
	fact := func(name string, was, is *string) whatif.Fact { return whatif.Fact{Name: name, Was: was, Is: is} }
	for name, tc := range map[string]struct {
		result *whatif.Result
		want   string
	}{
		"nothing is asked": {nil, ""},
		"a rollout is released": {&whatif.Result{
			Facts:     []whatif.Fact{fact("workload.annotations.approved", nil, ptr.To("r2")), fact("now", ptr.To("1773489600000000000"), ptr.To("1773658800000000000"))},
			Decisions: []whatif.Decision{{Point: "rollout/plan", Changed: true, Was: "Hold", Is: "Go", Gone: []record.Reason{heldReason("near.many", nil)}}},
		}, `
  if            workload.annotations.approved: not there -> r2
                now: 2026-03-14T12:00:00Z -> 2026-03-16T11:00:00Z
  then          rollout/plan: Go in place of Hold
  released      near.many - The title
                near.rego:3:1, bundle near@1a2b3c
                  It waits.
`},
		"others hold, and the answer has other numbers": {&whatif.Result{
			Facts: []whatif.Fact{fact("a", ptr.To(""), nil)},
			Decisions: []whatif.Decision{{
				Point: "rollout/plan", Changed: true, Was: "Partly", Is: "Partly", More: 2,
				New: []record.Reason{heldReason("zone", func(r *record.Reason) { r.Where, r.Place = map[string]string{"zone": "b"}, "" })},
				Kept: []record.Reason{heldReason("pod", func(r *record.Reason) {
					r.Pod, r.Namespace, r.Until, r.Place = "web-0", "shop", "2026-11-23T08:00:00Z", ""
				})},
				Fields: []whatif.Fact{fact("limit", ptr.To("2"), ptr.To("5"))},
			}, {Point: "rollout/rank"}},
		}, `
  if            a: "" -> not there
  then          rollout/plan: Partly as before
  held by       zone - The title, only zone b
                  It waits.
  still held by pod - The title, only pod shop/web-0
                  It waits. (until 2026-11-23T08:00:00Z)
                and 2 more reasons
  answer        limit: 2 -> 5
`},
		"a request is denied otherwise, and then not decided": {&whatif.Result{
			Decisions: []whatif.Decision{
				{Point: "protection/budget", Changed: true, Was: "Deny", Is: "Deny", Gone: []record.Reason{heldReason("a", nil)}, New: []record.Reason{heldReason("b", nil)}},
				{Point: "protection/deletion", Changed: true, Was: "Allow", Is: "Timeout", Error: "it took too long."},
			},
		}, `
  then          protection/budget: Deny as before
  not denied    a - The title
                near.rego:3:1, bundle near@1a2b3c
                  It waits.
  denied by     b - The title
                near.rego:3:1, bundle near@1a2b3c
                  It waits.
  then          protection/deletion: Timeout in place of Allow
  no decision   it took too long. What holds is the fallback.
`},
		"nothing would change": {&whatif.Result{
			Facts:     []whatif.Fact{fact("update", ptr.To("1"), ptr.To("2"))},
			Decisions: []whatif.Decision{{Point: "rollout/plan", Was: "Go", Is: "Go"}, {Point: "rollout/rank", Was: "Order", Is: "Order"}},
		}, `
  if            update: 1 -> 2
  then          nothing would change in rollout/plan, rollout/rank
`},
		"nothing could be decided again": {&whatif.Result{Error: "no decision is remembered"}, `
  not known     no decision is remembered
`},
	} {
		t.Run(name, func(t *testing.T) {
			tx := text{width: 90}
			tx.writeWhatIf(tc.result)
			got := ""
			if len(tx.lines) > 0 {
				got = strings.Join(tx.lines, "\n") + "\n"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The command sends the changed facts, and prints what a manager answers.
func TestTheCommandAsksWhatIf(t *testing.T) {
	answered := explain.Answer{Subject: decision.Subject{Kind: "Pod", Namespace: "shop", Name: "web-1"}, Verdict: explain.Held, Reason: "Held", Decided: time.Now(), Replica: "manager-x"}
	var asked []string
	manager := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked = req.URL.Query()["if"]
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(explain.Reply{Answer: answered})
	}))
	manager.Config.ErrorLog = log.New(io.Discard, "", 0)
	manager.StartTLS()
	t.Cleanup(manager.Close)
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte(`{"apiVersion": "v1", "kind": "Config"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	facts := []string{`workload.annotations["a b"]="x=y"`, "update-"}
	run := func(form string, result *whatif.Result) (string, error) {
		answered.WhatIf = result
		cmd := exit.WithExitCodes(NewCommand())
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		args := []string{"pod/web-1", "-n", "shop", "--kubeconfig", config, "--server", "https://127.0.0.1:1", "--token", "t", "--endpoint", manager.URL, "--insecure-skip-tls-verify", "-o", form}
		for _, fact := range facts {
			args = append(args, "--if", fact)
		}
		cmd.SetArgs(args)
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	result := &whatif.Result{Facts: []whatif.Fact{{Name: "update", Was: ptr.To("3"), Is: ptr.To("0")}}, Decisions: []whatif.Decision{{Point: "rollout/plan", Was: "Go", Is: "Go"}}}
	got, err := run("text", result)
	if err != nil || !slices.Equal(asked, facts) || !strings.Contains(got, "Pod shop/web-1 is HELD") || !strings.Contains(got, "then          nothing would change in rollout/plan") {
		t.Errorf("%v, asked with %q, printed\n%s", err, asked, got)
	}
	for _, form := range []string{"json", "yaml"} {
		got, err := run(form, result)
		var reply explain.Reply
		if err == nil {
			err = yaml.Unmarshal([]byte(got), &reply)
		}
		if diff := cmp.Diff(result, reply.Answer.WhatIf); err != nil || diff != "" {
			t.Errorf("as %s: %v, (-want +got)\n%s", form, err, diff)
		}
	}
	if got, err := run("text", &whatif.Result{Invalid: "update is a string"}); got != "" || exit.Code(err) != exit.Usage || err.Error() != "--if: update is a string" {
		t.Errorf("of a wrong type: %v, printed %q", err, got)
	}
	if got, err := run("text", nil); got != "" || exit.Code(err) != exit.Failed || !strings.Contains(err.Error(), "manager manager-x did not decide again") {
		t.Errorf("of an older manager: %v, printed %q", err, got)
	}
}
