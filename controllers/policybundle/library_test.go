package policybundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/policies"
)

const builtin = `package rollout

default plan := {"limit": 0, "maxUnavailable": 0, "holds": [], "scatter": []}

plan := {"limit": input.update, "maxUnavailable": input.maxUnavailable, "holds": [h | some h in holds], "scatter": []}

holds contains h if {
	some name
	some h in data.extend.rollout[name].hold
}
`

// Files of bundles. Each holds with a reason of its own.
func hold(pkg, reason, when string) map[string]string {
	return map[string]string{pkg + "/a.rego": "package extend.rollout." + pkg + "\n\nhold contains {\"reason\": \"" + reason + "\", \"message\": \"m\"} if " + when + "\n"}
}

func with(files map[string]string, path, text string) map[string]string {
	out := maps.Clone(files)
	out[path] = text
	return out
}

var (
	broken = map[string]string{"a.rego": "package extend.rollout.a\nhold contains"}
	// slow never ends in anybody's lifetime, and is quick in its own test.
	slow = hold("slow", "Slow", `{
	r := numbers.range(1, 2000)
	some a in r; some b in r; some c in r; some d in r
	a + b + c + d == input.update
}`)
)

func newLibrary(t *testing.T, opts ...engine.Option) *Library {
	t.Helper()
	files := map[string]string{"rollout/plan.rego": builtin}
	// What is built in about rollouts would hold where a test does not want it.
	paths, err := fs.Glob(policies.Builtin, "protection/*.rego")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there is nothing about protection: %v", err)
	}
	for _, path := range paths {
		text, err := fs.ReadFile(policies.Builtin, path)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = string(text)
	}
	b, err := bundle.FromFiles("builtin", files, bundle.AsBuiltin())
	if err != nil {
		t.Fatal(err)
	}
	var shadows *record.Shadows
	// A machine that is busy is no news here: neither that a decision takes long, nor
	// that those of a namespace do together.
	opts = append(opts, engine.WithPatience(20), engine.WithShare(1000))
	e, err := engine.FromBundle(b, append(opts, engine.WithSinkOf(func(e *engine.Engine) engine.Sink {
		shadows = record.NewShadows(e, record.WithBusy(func() bool { return false }))
		return shadows
	}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shadows.Close(); e.Close() })
	return NewLibrary(e, shadows)
}

func platform(name string) Key          { return Key{Name: name} }
func tenant(namespace, name string) Key { return Key{Namespace: namespace, Name: name} }

func made(t *testing.T, key Key, files map[string]string, opts ...bundle.Option) *bundle.Bundle {
	t.Helper()
	if key.Namespace != "" {
		opts = append(opts, bundle.AsTenant(key.Namespace))
	}
	b, err := bundle.FromFiles(key.Name, files, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, l *Library, key Key, files map[string]string) {
	t.Helper()
	if err := l.Put(t.Context(), key, Standing{Enforced: made(t, key, files)}); err != nil {
		t.Fatal(err)
	}
}

// reasonsIn are the holds that the library's policies come to in a namespace.
func reasonsIn(l *Library, namespace string) string {
	plan, rec := engine.Decide(context.Background(), l.engine, decision.RolloutPlan(), decision.Subject{Kind: "CloneSet", Namespace: namespace, Name: "web"}, decision.PlanInput{Update: 3})
	if rec.Outcome != decision.Decided {
		return string(rec.Outcome) + " " + rec.Error
	}
	var out []string
	for _, h := range plan.Holds {
		out = append(out, h.Reason)
	}
	return strings.Join(out, " ")
}

func want(t *testing.T, l *Library, reasons string) {
	t.Helper()
	wantIn(t, l, "shop", reasons)
}

func wantIn(t *testing.T, l *Library, namespace, reasons string) {
	t.Helper()
	if got := reasonsIn(l, namespace); got != reasons {
		t.Errorf("the holds in %s are %q, want %q", namespace, got, reasons)
	}
}

func active(l *Library, key Key) string {
	if b := l.Standing(key).Enforced; b != nil {
		return b.Revision
	}
	return ""
}

func TestTwoBundlesWithOnePackage(t *testing.T) {
	l := newLibrary(t)
	put(t, l, platform("first"), hold("a", "First", "true"))
	second := Standing{Enforced: made(t, platform("second"), hold("a", "Second", "true"))}
	var problems module.Problems
	if err := l.Put(t.Context(), platform("second"), second); !errors.As(err, &problems) || !strings.Contains(err.Error(), "package extend.rollout.a of bundle second belongs to bundle first already") {
		t.Errorf("got %v", err)
	}
	want(t, l, "First")
	if err := l.Remove(t.Context(), platform("first")); err != nil {
		t.Fatal(err)
	}
	if err := l.Put(t.Context(), platform("second"), second); err != nil {
		t.Fatal(err)
	}
	want(t, l, "Second")
}

func TestATenantGivesWayToThePlatform(t *testing.T) {
	l := newLibrary(t)
	put(t, l, tenant("shop", "mine"), hold("freeze", "Mine", "true"))
	put(t, l, tenant("bank", "other"), hold("other", "Other", "true"))
	want(t, l, "Mine")
	put(t, l, platform("freeze"), hold("freeze", "Platform", "true"))
	want(t, l, "Platform")
	wantIn(t, l, "bank", "Other Platform")
	if gone := fmt.Sprint(l.Gone()); gone != "[shop/mine]" {
		t.Errorf("gone are %s", gone)
	}
	if err := l.Put(t.Context(), tenant("shop", "mine"), Standing{Enforced: made(t, tenant("shop", "mine"), hold("freeze", "Mine", "true"))}); err == nil {
		t.Error("it has the platform's package")
	}
	want(t, l, "Platform")
}

func TestAShadowIsComparedAndNeverActedOn(t *testing.T) {
	l := newLibrary(t)
	key := platform("freeze")
	now, next := made(t, key, hold("a", "One", "true")), made(t, key, hold("a", "Two", "true"))
	if err := l.Put(t.Context(), key, Standing{Enforced: now, Shadow: next}); err != nil {
		t.Fatal(err)
	}
	var tally record.Tally
	for end := time.Now().Add(time.Minute); tally.Compared < 3 && time.Now().Before(end); {
		want(t, l, "One")
		tally, _ = l.Tally(key)
	}
	if tally.Compared < 3 || tally.Same != 0 || len(tally.Groups) != 1 {
		t.Fatalf("the tally is %+v", tally)
	}
	put(t, l, key, hold("a", "Two", "true"))
	want(t, l, "Two")
	if _, ok := l.Tally(key); ok {
		t.Error("what is enforced is compared still")
	}
}

func TestACanaryDecidesWhereItIsToldTo(t *testing.T) {
	l := newLibrary(t)
	key := platform("freeze")
	s := Standing{Enforced: made(t, key, hold("a", "One", "true")), Canary: made(t, key, hold("a", "Two", "true"), bundle.AsCanary("shop"))}
	if err := l.Put(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	want(t, l, "Two")
	wantIn(t, l, "bank", "One")
	s.Canary = made(t, key, hold("a", "Two", "true"), bundle.AsCanary("bank"))
	if err := l.Put(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	want(t, l, "One")
	wantIn(t, l, "bank", "Two")
	s.Canary = nil
	if err := l.Put(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	wantIn(t, l, "bank", "One")
}

func TestRemove(t *testing.T) {
	w := watcher{make(chan engine.Rollback, 10)}
	l := newLibrary(t, engine.WithObserver(w), engine.WithGrace(20*time.Millisecond))
	if err := l.Remove(t.Context(), platform("none")); err != nil {
		t.Error(err)
	}
	put(t, l, platform("a"), hold("a", "A", "true"))
	put(t, l, platform("slow"), slow)
	exhaust(t, l, w)
	want(t, l, "A")
	put(t, l, platform("b"), hold("b", "B", "true"))
	put(t, l, platform("slow"), slow) // with others it may try again
	l.Gone()
	if err := l.Remove(t.Context(), platform("b")); err != nil {
		t.Fatal(err)
	}
	want(t, l, "A")
	if gone := fmt.Sprint(l.Gone()); gone != "[/slow]" || active(l, platform("slow")) != "" {
		t.Errorf("gone are %v", gone)
	}
}

// watcher is an observer that passes rollbacks on.
type watcher struct{ rolledBack chan engine.Rollback }

func (watcher) Activated(string)                {}
func (watcher) Stuck(decision.Name, int)        {}
func (watcher) Throttled(string, decision.Name) {}
func (w watcher) RolledBack(r engine.Rollback)  { w.rolledBack <- r }

// exhaust asks until the watchdog rolls back.
func exhaust(t *testing.T, l *Library, w watcher) {
	t.Helper()
	p := decision.RolloutPlan()
	p.Budget = 20 * time.Millisecond
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		engine.Decide(t.Context(), l.engine, p, decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, decision.PlanInput{Update: -1})
		select {
		case <-w.rolledBack:
			return
		default:
		}
	}
	t.Fatal("the watchdog did not roll back")
}

func TestRollback(t *testing.T) {
	w := watcher{make(chan engine.Rollback, 10)}
	l := newLibrary(t, engine.WithObserver(w), engine.WithGrace(20*time.Millisecond))
	put(t, l, platform("a"), hold("a", "One", "true"))
	put(t, l, platform("slow"), hold("slow", "Quick", "true"))
	good := active(l, platform("slow"))
	put(t, l, platform("slow"), slow)
	exhaust(t, l, w)
	if gone := fmt.Sprint(l.Gone()); gone != "[/slow]" {
		t.Errorf("gone are %v", gone)
	}
	if active(l, platform("slow")) != good || active(l, platform("a")) == "" {
		t.Errorf("active are %q and %q, want what was before", active(l, platform("slow")), active(l, platform("a")))
	}
	want(t, l, "One Quick")
	if err := l.Put(t.Context(), platform("slow"), Standing{Enforced: made(t, platform("slow"), slow)}); !errors.As(err, &engine.RolledBackError{}) {
		t.Errorf("got %v", err)
	}
	want(t, l, "One Quick")
	put(t, l, platform("slow"), hold("slow", "Quicker", "true"))
	want(t, l, "One Quicker")
}
