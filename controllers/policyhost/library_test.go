// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/policyhost/hosttest"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/engine/shadow"
)

var (
	hold   = hosttest.HoldFiles
	broken = map[string]string{"a.rego": "package extend.rollout.a\nhold contains"}
	slow   = hosttest.SlowFiles()
)

func testLibrary(t *testing.T, opts ...engine.Option) *library {
	t.Helper()
	var shadows *shadow.Runner
	// A machine that is busy is no news here: neither that a decision takes long, nor
	// that those of a namespace do together.
	opts = append(opts, engine.WithPatience(20), engine.WithShare(1000), hosttest.WithCompiled(t))
	e, err := engine.New(hosttest.BuiltinPolicies(t), append(opts, engine.WithSinkOf(func(e *engine.Engine) engine.Sink {
		shadows = shadow.New(e, shadow.WithBusy(func() bool { return false }))
		return shadows
	}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shadows.Close(); e.Close() })
	return newLibrary(e, shadows)
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

func put(t *testing.T, l *library, key Key, files map[string]string) {
	t.Helper()
	if err := l.PutStages(t.Context(), key, Stages{Enforced: made(t, key, files)}); err != nil {
		t.Fatal(err)
	}
}

// reasonsIn are the holds that the library's policies come to in a namespace.
func reasonsIn(l *library, namespace string) string { return hosttest.HoldReasons(l.engine, namespace) }

func want(t *testing.T, l *library, reasons string) {
	t.Helper()
	wantIn(t, l, "shop", reasons)
}

func wantIn(t *testing.T, l *library, namespace, reasons string) {
	t.Helper()
	if got := reasonsIn(l, namespace); got != reasons {
		t.Errorf("the holds in %s are %q, want %q", namespace, got, reasons)
	}
}

func active(l *library, key Key) string {
	if b := l.BundleStages(key).Enforced; b != nil {
		return b.Revision
	}
	return ""
}

func TestTwoBundlesWithOnePackage(t *testing.T) {
	l := testLibrary(t)
	put(t, l, platform("first"), hold("a", "First", "true"))
	second := Stages{Enforced: made(t, platform("second"), hold("a", "Second", "true"))}
	var problems module.Problems
	if err := l.PutStages(t.Context(), platform("second"), second); !errors.As(err, &problems) || !strings.Contains(err.Error(), "package extend.rollout.a of bundle second belongs to bundle first already") {
		t.Errorf("got %v", err)
	}
	want(t, l, "First")
	if err := l.RemoveBundle(t.Context(), platform("first")); err != nil {
		t.Fatal(err)
	}
	if err := l.PutStages(t.Context(), platform("second"), second); err != nil {
		t.Fatal(err)
	}
	want(t, l, "Second")
}

func TestATenantGivesWayToThePlatform(t *testing.T) {
	l := testLibrary(t)
	put(t, l, tenant("shop", "mine"), hold("freeze", "Mine", "true"))
	put(t, l, tenant("bank", "other"), hold("other", "Other", "true"))
	want(t, l, "Mine")
	put(t, l, platform("freeze"), hold("freeze", "Platform", "true"))
	// What it held is not known, so it is not let go on.
	const missing = "Error bundle shop/mine takes part in this decision and is missing: it has a package or data that cluster bundle freeze has"
	want(t, l, missing)
	wantIn(t, l, "bank", "Other Platform")
	if gone := fmt.Sprint(l.DrainRemoved()); gone != "[shop/mine]" {
		t.Errorf("gone are %s", gone)
	}
	if err := l.PutStages(t.Context(), tenant("shop", "mine"), Stages{Enforced: made(t, tenant("shop", "mine"), hold("freeze", "Mine", "true"))}); err == nil {
		t.Error("it has the platform's package")
	}
	want(t, l, missing)
	if err := l.PutStages(t.Context(), tenant("shop", "mine"), Stages{Enforced: made(t, tenant("shop", "mine"), hold("other", "Mine", "true"))}); err != nil {
		t.Fatal(err)
	}
	want(t, l, "Mine Platform")
}

// A bundle that has to give way is looked at at once, and not when it changes next.
func TestABundleThatGivesWayIsLookedAtAgain(t *testing.T) {
	h := &Host{name: "replica", rolledBack: make(chan Key, 10)}
	h.library = testLibrary(t)
	h.engine = h.library.engine
	own := tenant("shop", "mine")
	put(t, h.library, own, hold("freeze", "Mine", "true"))
	key := platform("freeze")
	if err := h.putStages(t.Context(), key, Stages{Enforced: made(t, key, hold("freeze", "Platform", "true"))}); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-h.RolledBack():
		if got != own {
			t.Errorf("looked at again is %s", got)
		}
	default:
		t.Error("no bundle is looked at again")
	}
}

func TestAShadowIsComparedAndNeverActedOn(t *testing.T) {
	l := testLibrary(t)
	key := platform("freeze")
	now, next := made(t, key, hold("a", "One", "true")), made(t, key, hold("a", "Two", "true"))
	if err := l.PutStages(t.Context(), key, Stages{Enforced: now, Shadow: next}); err != nil {
		t.Fatal(err)
	}
	var tally compare.Tally
	for end := time.Now().Add(time.Minute); tally.Compared < 3 && time.Now().Before(end); {
		want(t, l, "One")
		tally, _ = l.ShadowTally(key)
	}
	if tally.Compared < 3 || tally.Same != 0 || len(tally.Groups) != 1 {
		t.Fatalf("the tally is %+v", tally)
	}
	put(t, l, key, hold("a", "Two", "true"))
	want(t, l, "Two")
	if _, ok := l.ShadowTally(key); ok {
		t.Error("what is enforced is compared still")
	}
}

func TestACanaryDecidesWhereItIsToldTo(t *testing.T) {
	l := testLibrary(t)
	key := platform("freeze")
	s := Stages{Enforced: made(t, key, hold("a", "One", "true")), Canary: made(t, key, hold("a", "Two", "true"), bundle.AsCanary("shop"))}
	if err := l.PutStages(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	want(t, l, "Two")
	wantIn(t, l, "bank", "One")
	s.Canary = made(t, key, hold("a", "Two", "true"), bundle.AsCanary("bank"))
	if err := l.PutStages(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	want(t, l, "One")
	wantIn(t, l, "bank", "Two")
	s.Canary = nil
	if err := l.PutStages(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	wantIn(t, l, "bank", "One")
}

func TestRemove(t *testing.T) {
	w := hosttest.NewWatcher()
	l := testLibrary(t, w.EngineOptions()...)
	if err := l.RemoveBundle(t.Context(), platform("none")); err != nil {
		t.Error(err)
	}
	put(t, l, platform("a"), hold("a", "A", "true"))
	put(t, l, platform("slow"), slow)
	w.TriggerRollback(t, l.engine)
	withheld(t, l, "shop", "/slow@")
	put(t, l, platform("b"), hold("b", "B", "true"))
	withheld(t, l, "shop", "/slow@")
	if err := l.PutStages(t.Context(), platform("slow"), Stages{Enforced: made(t, platform("slow"), slow)}); !errors.As(err, &engine.RolledBackError{}) {
		t.Errorf("beside another bundle it comes back: %v", err)
	}
	l.DrainRemoved()
	if err := l.RemoveBundle(t.Context(), platform("b")); err != nil {
		t.Fatal(err)
	}
	withheld(t, l, "shop", "/slow@")
	if gone := fmt.Sprint(l.DrainRemoved()); gone != "[]" {
		t.Errorf("gone are %v", gone)
	}
	if err := l.RemoveBundle(t.Context(), platform("slow")); err != nil {
		t.Fatal(err)
	}
	want(t, l, "A")
	put(t, l, platform("slow"), slow) // one that is made anew is judged anew
	if active(l, platform("slow")) == "" {
		t.Error("it is not active")
	}
}

// withheld checks that decisions in a namespace are the strictest answers, and because of what.
func withheld(t *testing.T, l *library, namespace, because string) {
	t.Helper()
	because = strings.TrimPrefix(because, "/")
	if got := reasonsIn(l, namespace); !strings.HasPrefix(got, "Error "+because) || !strings.Contains(got, "takes part in rollout/plan and was rolled back") {
		t.Errorf("in %s decisions are %q, want none because of %s", namespace, got, because)
	}
}

func TestRollback(t *testing.T) {
	w := hosttest.NewWatcher()
	l := testLibrary(t, w.EngineOptions()...)
	put(t, l, platform("a"), hold("a", "One", "true"))
	put(t, l, platform("slow"), hold("slow", "Quick", "true"))
	good := active(l, platform("slow"))
	put(t, l, platform("slow"), slow)
	w.TriggerRollback(t, l.engine)
	if gone := fmt.Sprint(l.DrainRemoved()); gone != "[/slow]" {
		t.Errorf("gone are %v", gone)
	}
	if active(l, platform("slow")) != good || active(l, platform("a")) == "" {
		t.Errorf("active are %q and %q, want what was before", active(l, platform("slow")), active(l, platform("a")))
	}
	want(t, l, "One Quick")
	if err := l.PutStages(t.Context(), platform("slow"), Stages{Enforced: made(t, platform("slow"), slow)}); !errors.As(err, &engine.RolledBackError{}) {
		t.Errorf("got %v", err)
	}
	want(t, l, "One Quick")
	put(t, l, platform("slow"), hold("slow", "Quicker", "true"))
	want(t, l, "One Quicker")
}

// What is rolled back, and nothing replaces it, stands withheld: also on the disk, and where another replica rolled it back.
func TestWithheld(t *testing.T) {
	w := hosttest.NewWatcher()
	l := testLibrary(t, w.EngineOptions()...)
	l.KeepOn(&disk{Dir: t.TempDir()})
	own := tenant("shop", "slow")
	put(t, l, platform("a"), hold("a", "One", "true"))
	put(t, l, own, slow)
	revision := active(l, own)
	w.TriggerRollback(t, l.engine)
	if gone := fmt.Sprint(l.DrainRemoved()); gone != "[shop/slow]" {
		t.Errorf("gone are %v", gone)
	}
	if s := l.BundleStages(own); s.Enforced != nil || s.Withheld == nil || s.Withheld.Revision != revision {
		t.Errorf("it stands as %+v", s)
	}
	withheld(t, l, "shop", "shop/slow@")
	wantIn(t, l, "bank", "One")
	other := testLibrary(t)
	if n, err := other.RestoreStored(t.Context(), l.disk); n != 2 || err != nil {
		t.Errorf("on the disk are %d, %v", n, err)
	}
	withheld(t, other, "shop", "shop/slow@")
	wantIn(t, other, "bank", "One")
	if got := fmt.Sprint(other.WithheldBeside(tenant("shop", "more")).IDs(), other.WithheldBeside(tenant("bank", "more")).IDs(), other.PeerBundles(own).IDs()); got != fmt.Sprintf("[shop/slow@%s] [] [%s]", revision, l.BundleStages(platform("a")).Enforced.ID()) {
		t.Errorf("beside others stand %s", got)
	}
	if err := other.PutStages(t.Context(), tenant("shop", "more"), Stages{Enforced: made(t, tenant("shop", "more"), slow)}); !errors.As(err, &module.Problems{}) {
		t.Errorf("another bundle has its package: %v", err)
	}
	if err := other.PutStages(t.Context(), own, Stages{}); err != nil {
		t.Error(err)
	}
	want(t, other, "One")
}

// A bundle that is put in while the engine rolls back another one is not to blame for that.
func TestARollbackMeanwhileIsNoFaultOfAnother(t *testing.T) {
	w := hosttest.NewWatcher()
	l := testLibrary(t, w.EngineOptions()...)
	put(t, l, platform("slow"), hold("slow", "Quick", "true"))
	put(t, l, platform("slow"), slow)
	times := 0
	l.before = func(context.Context, *engine.Snapshot) error {
		if times++; times == 1 {
			w.TriggerRollback(t, l.engine)
		}
		return nil
	}
	if err := l.PutStages(t.Context(), platform("a"), Stages{Enforced: made(t, platform("a"), hold("a", "One", "true"))}); err != nil {
		t.Fatal(err)
	}
	want(t, l, "One Quick")
	if times != 2 {
		t.Errorf("it was tried %d times", times)
	}
}

// What must be done before bundles decide is done before; where it cannot be, those that decide stay.
func TestBefore(t *testing.T) {
	l := testLibrary(t)
	put(t, l, platform("first"), hold("a", "First", "true"))
	key, cannot := platform("second"), errors.New("not now")
	second := Stages{Enforced: made(t, key, hold("b", "Second", "true"))}
	l.before = func(context.Context, *engine.Snapshot) error { return cannot }
	if err := l.PutStages(t.Context(), key, second); !errors.Is(err, cannot) {
		t.Errorf("got %v", err)
	}
	want(t, l, "First")
	l.before = func(_ context.Context, next *engine.Snapshot) error {
		want(t, l, "First")
		if len(next.UserBundles()) != 2 {
			t.Errorf("next are %v", next.UserBundles())
		}
		return nil
	}
	if err := l.PutStages(t.Context(), key, second); err != nil {
		t.Fatal(err)
	}
	want(t, l, "First Second")
}
