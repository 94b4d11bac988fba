// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/replay"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/policies"
)

func builtin(t *testing.T) *bundle.Bundle {
	t.Helper()
	b, err := bundle.ReadBuiltin(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func user(t *testing.T, source string) *bundle.Bundle {
	t.Helper()
	b, err := bundle.FromFiles("user", map[string]string{"p.rego": source})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// held holds workloads of which more than some pods are to be moved.
func held(limit int) string {
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

// recorded asks for plans of 0 to 9 pods with a bundle, or without one.
func recorded(t *testing.T, b *bundle.Bundle) []decision.Record {
	t.Helper()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	e, err := engine.FromBundle(builtin(t), engine.WithClock(func() time.Time { at = at.Add(time.Second); return at }), engine.WithPatience(20))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if b != nil {
		if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
			t.Fatal(err)
		}
	}
	var out []decision.Record
	for n := range 10 {
		subject := decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: fmt.Sprint("web-", n)}
		_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), subject, rollout.PlanInput{Update: n, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}})
		out = append(out, r)
	}
	return out
}

func TestReplay(t *testing.T) {
	for _, tc := range []struct {
		name      string
		was       *bundle.Bundle
		candidate string
		opts      func() []replay.Option
		want      string // unchanged stricter looser changed error, rules never hit
		groups    string
		missing   int
	}{
		{
			name: "a new hold", candidate: held(6), want: "7 3 0 0 0 [x.never]",
			groups: "3 stricter Go -> Hold (x.many TooMany)",
		},
		{
			name: "another limit of the hold that was active", was: user(t, held(3)), candidate: held(6), want: "7 0 3 0 0 [x.never]",
			groups: "3 looser Hold (x.many TooMany) -> Go",
		},
		{
			name: "a baseline that is decided again", candidate: held(6), want: "9 0 1 0 0 [x.never]",
			opts: func() []replay.Option {
				return []replay.Option{replay.WithBaseline(replay.Side{Builtin: builtin(t), Set: bundle.Set{user(t, held(5))}})}
			},
			groups: "1 looser Hold (x.many TooMany) -> Go",
		},
		{
			name: "a rule that fails", candidate: `package extend.rollout.x

hold contains {"reason": "R", "message": "m"} if to_number(input.workload.name) > input.update
`, want: "0 0 0 0 10 []", groups: "10 error Go -> Error",
		},
		{
			name: "a bundle that took part and is gone", was: func() *bundle.Bundle { b := user(t, held(3)); b.Name = "other"; return b }(),
			candidate: held(9), want: "4 0 6 0 0 [x.many x.never]", groups: "6 looser Hold (x.many TooMany) -> Go", missing: 1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := user(t, tc.candidate)
			var opts []replay.Option
			if tc.opts != nil {
				opts = tc.opts()
			}
			r := replay.New(replay.Side{Builtin: builtin(t), Set: bundle.Set{b}}, b, opts...)
			got, err := r.RunJob(t.Context(), recorded(t, tc.was))
			if err != nil {
				t.Fatal(err)
			}
			unused := []string{}
			for _, rule := range got.Unused {
				unused = append(unused, rule.ID)
			}
			if s := fmt.Sprint(got.Unchanged, got.Stricter, got.Looser, got.Changed, got.Errors, unused); strings.ReplaceAll(s, "  ", " ") != tc.want {
				t.Errorf("got %s, want %s", s, tc.want)
			}
			groups := ""
			for _, g := range got.Groups {
				groups += fmt.Sprintf("%d %s %s -> %s", g.Count, g.Kind, g.Then, g.Now)
			}
			if groups != tc.groups || got.Decisions != 10 || len(got.Missing) != tc.missing {
				t.Errorf("got %s, %d decisions, missing %v", groups, got.Decisions, got.Missing)
			}
			if got.Stricter > 0 && got.Samples[0].Place != "p.rego:3:1" {
				t.Errorf("the rule is at %q", got.Samples[0].Place)
			}
			if p := got.Latency.Points; len(p) != 1 || p[0].Point != "rollout/plan" || p[0].Now.P50 <= 0 || p[0].Now.P99 < p[0].Now.P50 || p[0].Ratio <= 0 {
				t.Errorf("latency %+v", p)
			}
		})
	}
}

func TestTheOrderOfRecordsDoesNotMatter(t *testing.T) {
	records := recorded(t, nil)
	b := user(t, held(2))
	var first string
	for range 5 {
		rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		r := replay.New(replay.Side{Builtin: builtin(t), Set: bundle.Set{b}}, b, replay.WithSamples(2))
		report, err := r.RunJob(t.Context(), records)
		if err != nil {
			t.Fatal(err)
		}
		report.Latency = nil
		text, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(text)
		}
		if string(text) != first {
			t.Fatalf("got\n%s\nand then\n%s", first, text)
		}
	}
}

func TestWhatWasHiddenIsTold(t *testing.T) {
	records := recorded(t, nil)
	records[0].Masked = []string{"/input/workload/annotations/token"}
	records[1].Masked = []string{"/result/holds/0/message"}
	b := user(t, held(9))
	report, err := replay.New(replay.Side{Builtin: builtin(t), Set: bundle.Set{b}}, b).RunJob(t.Context(), records)
	if err != nil || report.Masked != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestABundleThatLoopsIsGivenUp(t *testing.T) {
	b := user(t, `package extend.rollout.x

hold contains {"reason": "R", "message": "m"} if {
	some i in numbers.range(1, 3000)
	some j in numbers.range(1, 3000)
	i * j == -1
}
`)
	records := recorded(t, nil)
	records = append(records, records...)
	report, err := replay.New(replay.Side{Builtin: builtin(t), Set: bundle.Set{b}}, b).RunJob(t.Context(), records)
	if err != nil || report.Decisions != 10 || report.Skipped != 10 || report.Errors != 10 || report.Stopped == "" {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestReplayEndsWhenItIsInterrupted(t *testing.T) {
	b := user(t, held(1))
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := replay.New(replay.Side{Builtin: builtin(t), Set: bundle.Set{b}}, b).RunJob(ctx, recorded(t, nil)); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}
