// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/policies"
)

// many holds workloads of which more than some pods are to be moved.
func many(limit int) string {
	return fmt.Sprintf(`package extend.rollout.x

# METADATA
# title: Many
# labels:
#   id: x.many
hold contains {"rule": "x.many", "reason": "TooMany", "message": "There are too many."} if input.update > %d

# METADATA
# title: Never
# labels:
#   id: x.never
hold contains {"rule": "x.never", "reason": "Never", "message": "Never."} if input.update < 0
`, limit)
}

// record writes decisions about 0 to 5 pods as they are with a bundle.
func (a author) record(file, source string) {
	a.t.Helper()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	e, err := engine.New(policies.Builtin, engine.WithClock(func() time.Time { at = at.Add(time.Second); return at }), engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		a.t.Fatal(err)
	}
	defer e.Close()
	b, err := bundle.FromFiles("x", map[string]string{"x.rego": source})
	if err != nil {
		a.t.Fatal(err)
	}
	if err := e.ActivateBundles(a.t.Context(), bundle.Set{b}); err != nil {
		a.t.Fatal(err)
	}
	var records []decision.Record
	for n := range 6 {
		subject := decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: fmt.Sprint("web-", n)}
		_, r := engine.Decide(a.t.Context(), e, rollout.PlanPoint(), subject, rollout.PlanInput{Update: n, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}})
		records = append(records, r)
	}
	var lines bytes.Buffer
	if err := record.Write(&lines, records); err != nil {
		a.t.Fatal(err)
	}
	a.write(file, lines.String())
}

func TestReplay(t *testing.T) {
	a := newAuthor(t)
	a.record("then.jsonl", many(2))
	a.write("x/x.rego", many(3))
	a.write("strict/x.rego", many(1))
	a.write("same.rego", many(2))
	a.write("wrong/x.rego", "package extend.rollout.x\n\nhold contains {} if input.nope")
	a.write("noise.txt", "packed\n")
	const replay = "replay --from then.jsonl --no-latency --bundle "
	for _, tc := range []struct {
		name, types string
		code        int
		want        string
	}{
		{
			"looser", replay + "x --fail-on looser,error", 1, `6 decisions from 2026-11-21T10:00:01Z to 2026-11-21T10:00:11Z, with x@HASH, against what was recorded
  unchanged  5
  error      0
  looser     1
  stricter   0
  changed    0

by point and reason:
  1  looser  rollout/plan  Hold (x.many TooMany) -> Go

such as:
  looser: rollout/plan of CloneSet shop/web-3, decision 4
    then: Hold, TooMany by x.many: There are too many.
    now:  Go

rules that no decision was made by:
  x.never  x/x.rego:9:1
Error: of 6 decisions are 1 looser
`,
		},
		{"looser, which is fine", replay + "x", 0, "  looser     1\n"},
		{"stricter than another bundle", replay + "strict --baseline x --fail-on stricter", 1, "Error: of 6 decisions are 2 stricter\n"},
		{"as it was", replay + "same.rego --fail-on looser,stricter,changed,error", 0, "  unchanged  6\n"},
		{"one point that was not asked", replay + "x --point rollout/scale", 0, "0 decisions, with x@HASH"},
		{"from the standard input", "replay --from - --bundle x", 0, "0 decisions, with x@HASH"},
		{"as JSON", replay + "x -o json", 0, `"looser": 1`},
		{"as JUnit", replay + "x -o junit --fail-on looser", 1, `<testcase classname="x" name="no decision is looser">
      <failure message="1 of 6 decisions: looser">1 of 6 decisions: looser&#xA;1 of rollout/plan: Hold (x.many TooMany) -&gt; Go</failure>`},
		{"as SARIF", replay + "strict -o sarif --fail-on stricter", 1, `"ruleId": "stricter",
          "level": "error",`},
		{"for GitHub", replay + "strict -o github", 0, "::notice file=strict/x.rego,line=3,col=1,title=stricter::stricter: rollout/plan of CloneSet shop/web-2, decision 3, Go -> Hold (x.many TooMany)\n::notice file=strict/x.rego,line=9,col=1,title=unused::Of 6 decisions none was made by rule x.never.\n"},
		{"with how long it took", "replay --from then.jsonl --bundle x", 0, "p99 then"},
		{"beside a bundle of another name with the same package", replay + "same.rego --active x", 1, "belongs to bundle x already"},
		{"in place of a bundle of its name", replay + "x --active x --baseline same.rego --fail-on looser", 1, "Error: of 6 decisions are 1 looser\n"},
		{"a bundle that the gate refuses", replay + "wrong", 1, "undefined ref: input.nope"},
		{"no records", "replay --bundle x", 2, `required flag(s) "from" not set`},
		{"more decisions than a manager returns", "replay --from cluster --limit 10001 --bundle x", 2, "--limit is a number of at most 10000"},
		{"a file that is not there", "replay --from gone --bundle x", 3, "no such file"},
		{"a file of something else", "replay --from noise.txt --bundle x", 3, "line 1"},
		{"a kind that is not there", replay + "x --fail-on worse", 2, `--fail-on has "worse", want some of error, looser, stricter, changed, slower`},
		{"a point that is not there", replay + "x --point a/b", 2, "no decision point"},
		{"slower without latency", replay + "x --fail-on slower", 2, "does not go with"},
		{"a factor that makes no sense", replay + "x --slower-factor 0.5", 2, "--slower-factor"},
		{"a floor that makes no sense", replay + "x --slower-floor -1s", 2, "--slower-floor"},
		{"no time at all", "replay --from cluster --bundle x --since 0s", 2, "--since"},
		{"time without a cluster", replay + "x --since 2h", 2, "go with --from cluster only"},
		{"a cluster that is not there", "replay --from cluster --bundle x --server https://127.0.0.1:1 --endpoint http://x", 3, "want https://HOST:PORT"},
		{"less than no samples", replay + "x --samples -1", 2, "--samples"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, code := a.types(tc.types)
			if code != tc.code || !strings.Contains(got, tc.want) {
				t.Errorf("it ended with %d, want %d\n%s\nwant\n%s", code, tc.code, got, tc.want)
			}
			if text, _, _ := strings.Cut(got, "\nError:"); strings.Contains(tc.types, "json ") || strings.Contains(tc.types, "sarif") {
				if strings.HasPrefix(text, "{") && !json.Valid([]byte(text)) {
					t.Errorf("it is no JSON\n%s", text)
				}
			}
			if tc.code == 1 && strings.Contains(tc.types, "--no-latency") {
				if again, _ := a.types(tc.types); again != got {
					t.Errorf("the second time it printed\n%s", again)
				}
			}
		})
	}
}

// TestReplayOfWhatAManagerRemembers asks a manager that remembers what is in a file.
func TestReplayOfWhatAManagerRemembers(t *testing.T) {
	a := newAuthor(t)
	a.record("then.jsonl", many(2))
	a.write("x/x.rego", many(3))
	manager := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); r.URL.Path != explain.APIPath+"/"+explain.Decisions || q.Get("since") != "2h0m0s" || q.Get("point") != "rollout/plan" || q.Get("limit") != "100" {
			t.Errorf("it is asked for %s", r.URL)
		}
		w.Header().Set("Warning", `299 - "m remembers 7 older decisions"`)
		http.ServeFile(w, r, "then.jsonl")
	}))
	defer manager.Close()
	asks := "replay --from cluster --active= --since 2h --point rollout/plan --limit 100 --bundle x --fail-on looser,stricter --server https://127.0.0.1:1 --insecure-skip-tls-verify --endpoint " + manager.URL
	for _, tc := range []struct {
		name, more string
		want       []string
	}{
		{"with what is active now", "", []string{"remembers 7 older decisions", "6 decisions from", "against policies ", "Error: of 6 decisions are 2 stricter"}},
		{"with what was recorded", " --baseline recorded", []string{"against what was recorded", "Error: of 6 decisions are 1 looser"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, code := a.types(asks + tc.more)
			for _, want := range tc.want {
				if code != 1 || !strings.Contains(got, want) {
					t.Errorf("it ended with %d\n%s\nwant %s", code, got, want)
				}
			}
		})
	}
}
