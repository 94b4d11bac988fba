// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/proptest"
)

const corpus = "testdata/hostile"

// hostile is a bundle of the corpus; corpus/README.md says what the fields mean.
type hostile struct {
	Name       string            `json:"-"`
	About      string            `json:"about"`
	Tenant     bool              `json:"tenant,omitempty"`
	Signed     bool              `json:"signed,omitempty"`
	After      int64             `json:"after,omitempty"`
	Make       string            `json:"make,omitempty"`
	Seconds    int               `json:"seconds,omitempty"`
	Files      map[string]string `json:"files,omitempty"`
	Ends       string            `json:"ends"`
	Says       string            `json:"says"`
	RolledBack bool              `json:"rolledBack,omitempty"`
}

// Where bundles end that no stage of the gate refuses.
const (
	reading   = "read"
	signature = "signature"
	sequence  = "sequence"
	bounded   = "bounded"
)

func readHostile(t testing.TB) (out []hostile) {
	t.Helper()
	files, err := filepath.Glob(corpus + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		h := hostile{Name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
		if err := yaml.UnmarshalStrict(text, &h); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, h)
	}
	return out
}

// rolled is an observer that passes rollbacks on.
type rolled chan engine.Rollback

func (rolled) RevisionActivated(string)                {}
func (rolled) EvaluationStuck(decision.Name, int)      {}
func (rolled) DecisionThrottled(string, decision.Name) {}
func (rolled) BundlesWithheld(bundle.Set)              {}
func (r rolled) RolledBack(b engine.Rollback)          { r <- b }

// arena is where hostile bundles are let loose: an engine that decides about
// another namespace all the while.
type arena struct {
	builtin *bundle.Bundle
	engine  *engine.Engine
	us      signer
	rolled  rolled
	records []decision.Record
	decided atomic.Int64
}

func newArena(t *testing.T) *arena {
	t.Helper()
	b, err := bundle.ReadBuiltin(os.DirFS("../../../policies"))
	if err != nil {
		t.Fatal(err)
	}
	a := &arena{builtin: b, us: newSigner(t), rolled: make(rolled, 100)}
	// What a namespace's policies take together is not what is asked here, and one
	// hostile bundle after the other would use it up.
	a.engine, err = engine.FromBundle(b, engine.WithObserver(a.rolled), engine.WithMemory(256<<20), engine.WithGrace(100*time.Millisecond), engine.WithShare(1000))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.engine.Close)
	for n := range 3 {
		_, r := engine.Decide(t.Context(), a.engine, patient(), evil(), question(n))
		if r.Outcome != decision.Decided {
			t.Fatal(r.Error)
		}
		a.records = append(a.records, r)
	}
	return a
}

// patient is a point for where it is asked whether there is an answer: the machine
// has other things to do.
func patient() decision.Point[rollout.PlanInput, rollout.PlanOutput] {
	p := rollout.PlanPoint()
	p.Budget = 10 * time.Second
	return p
}

func evil() decision.Subject {
	return decision.Subject{Kind: "CloneSet", Namespace: "evil", Name: "web"}
}

func question(n int) rollout.PlanInput {
	return rollout.PlanInput{Update: n, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}}
}

// keepDeciding asks about another namespace until stop is called, which reports
// each decision that was not made.
func (a *arena) keepDeciding(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, rec := engine.Decide(context.Background(), a.engine, patient(), decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, question(5000))
			if rec.Outcome != decision.Decided {
				t.Errorf("a decision about another workload: %s %s", rec.Outcome, rec.Error)
			}
			a.decided.Add(1)
			time.Sleep(time.Millisecond)
		}
	}()
	return func() { cancel(); <-done }
}

// end is where a hostile bundle ends, and what is said.
func (a *arena) end(t *testing.T, h hostile) (where, says string) {
	t.Helper()
	var by *bundle.Verification
	if h.Signed {
		by = a.us.trusted()
	}
	// A platform's is tried out in one namespace, so that others can be watched.
	opt := bundle.AsCanary("evil")
	if h.Tenant {
		opt = bundle.AsTenant("evil")
	}
	text := h.archive(t, a.us)
	if h.After > 0 {
		by, text = a.us.trusted(), a.us.sign(t, text)
	}
	b, err := bundle.FromArchive("hostile", bytes.NewReader(text), by, opt)
	var unsigned bundle.SignatureError
	switch {
	case errors.As(err, &unsigned):
		return signature, unsigned.Error()
	case err != nil:
		return reading, err.Error()
	}
	if h.After > 0 {
		active := user(t, "hostile", map[string]string{"a.rego": hold + "true", ".manifest": fmt.Sprintf(`{"metadata": {"regatta": {"sequence": %d}}}`, h.After)})
		if err := b.FollowsActive(active); err != nil {
			return sequence, err.Error()
		}
	}
	seconds := time.Minute
	if h.Seconds > 0 {
		seconds = time.Duration(h.Seconds) * time.Second
	}
	taken := user(t, "other", map[string]string{"a.rego": strings.Replace(hold, "rollout.a", "rollout.taken", 1) + "false"})
	g := gate.New(a.builtin, gate.WithRunner(gate.Child{Memory: 256 << 20}), gate.WithTime(seconds))
	_, err = g.AdmitBundle(t.Context(), b, bundle.Set{taken}, a.records)
	var refused *gate.RefusedError
	if errors.As(err, &refused) {
		for _, p := range refused.Problems {
			if p.Code == "" {
				t.Errorf("%s: %s has no code", h.Name, p)
			}
		}
		return string(refused.Stage), refused.Problems.Error()
	}
	if err != nil {
		t.Fatalf("%s: %v", h.Name, err)
	}
	return a.bound(t, b, h)
}

// bound lets a bundle decide that the gate let in.
func (a *arena) bound(t *testing.T, b *bundle.Bundle, h hostile) (where, says string) {
	t.Helper()
	if err := a.engine.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.engine.ActivateBundles(context.Background(), nil); err != nil {
			t.Error(err)
		}
	}()
	p := rollout.PlanPoint()
	if !h.RolledBack {
		p.Budget = time.Minute // it is bounded by something else
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		got, rec := engine.Decide(t.Context(), a.engine, p, evil(), question(5000))
		if says == "" {
			if rec.Outcome == decision.Decided {
				return "nowhere", "it decided"
			}
			if got.Limit != 0 || len(got.Holds) == 0 {
				t.Errorf("%s: %+v is not the fallback", h.Name, got)
			}
			says = string(rec.Outcome) + ": " + rec.Error
		}
		if !h.RolledBack {
			return bounded, says
		}
		select {
		case r := <-a.rolled:
			if !slices.Equal(r.Bundles, bundle.Set{b}.IDs()) {
				t.Errorf("%s: %v were rolled back", h.Name, r.Bundles)
			}
			// Nothing was before it, so it is withheld; that costs no time any more.
			got, rec := engine.Decide(t.Context(), a.engine, patient(), evil(), question(5000))
			if rec.Outcome != decision.Failed || !slices.Equal(r.Withheld, r.Bundles) || got.Limit != 0 || len(got.Holds) == 0 {
				t.Errorf("%s: after it was rolled back: %+v %s %s", h.Name, got, rec.Outcome, rec.Error)
			}
			return bounded, says
		default:
		}
	}
	return "nowhere", "it was not rolled back"
}

func TestHostileBundles(t *testing.T) {
	if testing.Short() {
		t.Skip("it uses up the time and memory that it may")
	}
	if proptest.Race {
		t.Skip("the race detector keeps a shadow of all memory, which the limits count")
	}
	all := readHostile(t)
	if len(all) < 25 {
		t.Fatalf("there are %d", len(all))
	}
	a := newArena(t)
	defer a.keepDeciding(t)()
	for _, h := range all {
		start := time.Now()
		where, says := a.end(t, h)
		line, _, _ := strings.Cut(says, "\n")
		t.Logf("%-32s %-10s %5d ms  %.160s", h.Name, where, time.Since(start).Milliseconds(), line)
		said := func(part string) bool { return part != "" && strings.Contains(says, part) }
		if !slices.Contains(strings.Split(h.Ends, " or "), where) || !slices.ContainsFunc(strings.Split(h.Says, " or "), said) {
			t.Errorf("%s: it ends in %s and it says %q; want %s, %q", h.Name, where, says, h.Ends, h.Says)
		}
	}
	t.Logf("meanwhile %d decisions about another workload were made", a.decided.Load())
	if a.decided.Load() < int64(len(all)) {
		t.Error("there were too few decisions about another workload to tell")
	}
}

// TestTheTableOfHostileBundles keeps the README of the corpus true.
func TestTheTableOfHostileBundles(t *testing.T) {
	var table strings.Builder
	table.WriteString("| bundle | what it is | ends in | which says |\n|---|---|---|---|\n")
	for _, h := range readHostile(t) {
		ends := h.Ends
		if h.RolledBack {
			ends += ", rolled back"
		}
		fmt.Fprintf(&table, "| %s | %s | %s | `%s` |\n", h.Name, strings.TrimSuffix(h.About, "."), ends, strings.ReplaceAll(h.Says, "|", "\\|"))
	}
	file := corpus + "/README.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(text), "| bundle |")
	if !ok {
		t.Fatalf("%s has no table", file)
	}
	want := before + table.String()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s is not what the corpus says; run UPDATE=1 go test ./engine/bundle/gate -run Table", file)
	}
}
