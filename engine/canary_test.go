// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

// canary is a bundle as another, with another text, in some namespaces.
func canary(t testing.TB, of *bundle.Bundle, source string, namespaces ...string) *bundle.Bundle {
	t.Helper()
	b, err := bundle.FromFiles(of.Name, map[string]string{"p.rego": source}, bundle.AsCanary(namespaces...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func in(namespace string) decision.Subject {
	return decision.Subject{Kind: "Test", Namespace: namespace, Name: "web"}
}

func TestACanaryDecidesInItsNamespacesOnly(t *testing.T) {
	e := newEngine(t, builtin)
	stable := platform(t, "freeze", freeze)
	monday := strings.ReplaceAll(freeze, "friday", "monday")
	try := canary(t, stable, monday, "shop", "bank")
	own := tenant(t, "bank", strings.NewReplacer("test.freeze", "test.own", "friday", "tuesday").Replace(freeze))
	if err := e.ActivateBundles(t.Context(), bundle.Set{stable, try, own}); err != nil {
		t.Fatal(err)
	}
	holds := func(day string) (out []string) {
		for _, ns := range []string{"", "bank", "other", "shop"} {
			got, rec := engine.Decide(t.Context(), e, point(), in(ns), facts{Extra: day})
			if rec.Outcome != decision.Decided {
				t.Fatal(rec.Error)
			}
			if len(got.Holds) > 0 {
				out = append(out, ns)
			}
		}
		return out
	}
	for day, want := range map[string][]string{"friday": {"", "other"}, "monday": {"bank", "shop"}, "tuesday": {"bank"}} {
		if got := holds(day); !slices.Equal(got, want) {
			t.Errorf("on %s %v are held, want %v", day, got, want)
		}
	}
	before := e.ActiveSnapshot()
	if err := e.ActivateBundles(t.Context(), bundle.Set{stable, canary(t, stable, monday, "shop", "bank", "other"), own}); err != nil {
		t.Fatal(err)
	}
	if e.ActiveSnapshot() == before || !slices.Equal(holds("monday"), []string{"bank", "other", "shop"}) {
		t.Error("another namespace was added, and nothing changed")
	}
	if e.ActiveSnapshot().RevisionFor(in("shop")) != before.RevisionFor(in("shop")) {
		t.Error("what decides in shop has another revision though nothing changed there")
	}
	canaried := e.ActiveSnapshot().RevisionFor(in("shop"))
	promoted, err := bundle.FromFiles("freeze", try.Files)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{promoted, own}); err != nil {
		t.Fatal(err)
	}
	if got := e.ActiveSnapshot().RevisionFor(in("third")); got != canaried || !slices.Equal(holds("monday"), []string{"", "bank", "other", "shop"}) {
		t.Errorf("after it was promoted %s decides, want %s everywhere", got, canaried)
	}
}

// until decides until the watchdog has told of something, with an end.
func until(t *testing.T, e *engine.Engine, w *watcher, ask func()) engine.Rollback {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		ask()
		select {
		case <-w.changed:
		default:
			continue
		}
		w.mu.Lock()
		told := slices.Clone(w.rollbacks)
		w.mu.Unlock()
		if len(told) > 0 { // otherwise the engine reported a stuck evaluation
			return told[len(told)-1]
		}
	}
	t.Fatal("no bundle was blamed")
	return engine.Rollback{}
}

func TestWhoIsToBlame(t *testing.T) {
	slowIn := func(pkg string) string { return strings.Replace(crossProduct, "test.slow", "test."+pkg, 1) }
	fineIn := func(pkg string) string { return strings.Replace(freeze, "test.freeze", "test."+pkg, 1) }
	stable, other := platform(t, "rules", fineIn("rules")), platform(t, "other", fineIn("other"))
	for name, tc := range map[string]struct {
		set    bundle.Set
		blamed bundle.Set // of set
		canary bool
		left   bundle.Set
	}{
		"a canary, and neither what it replaces nor the tenant": {
			set:    bundle.Set{stable, other, canary(t, stable, slowIn("rules"), "shop", "bank"), tenant(t, "shop", fineIn("own"))},
			blamed: bundle.Set{canary(t, stable, slowIn("rules"))}, canary: true,
			left: bundle.Set{stable, other, tenant(t, "shop", fineIn("own"))},
		},
		"a tenant, and not the canary": {
			set:    bundle.Set{stable, canary(t, stable, fineIn("more"), "shop"), tenant(t, "shop", slowIn("own"))},
			blamed: bundle.Set{tenant(t, "shop", slowIn("own"))},
			left:   bundle.Set{stable, canary(t, stable, fineIn("more"), "shop")},
		},
		"the platform, and neither the canary nor the tenant": {
			set:    bundle.Set{platform(t, "slow", slowIn("slow")), stable, canary(t, stable, fineIn("more"), "shop"), tenant(t, "shop", fineIn("own"))},
			blamed: bundle.Set{platform(t, "slow", slowIn("slow"))},
			left:   bundle.Set{stable, canary(t, stable, fineIn("more"), "shop"), tenant(t, "shop", fineIn("own"))},
		},
		"the canary before the tenant when both are slow": {
			set:    bundle.Set{stable, canary(t, stable, slowIn("rules"), "shop"), tenant(t, "shop", slowIn("own"))},
			blamed: bundle.Set{canary(t, stable, slowIn("rules"))}, canary: true,
			left: bundle.Set{stable, tenant(t, "shop", slowIn("own"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatcher()
			e := newEngine(t, builtin, engine.WithObserver(w), engine.WithGrace(50*time.Millisecond))
			if err := e.ActivateBundles(t.Context(), tc.set); err != nil {
				t.Fatal(err)
			}
			got := until(t, e, w, func() { engine.Decide(t.Context(), e, hasty(), in("shop"), facts{N: 1}) })
			if !slices.Equal(got.Bundles, tc.blamed.IDs()) || got.Canary != tc.canary || got.Namespace != tc.blamed[0].Namespace {
				t.Errorf("blamed are %+v, want %v", got, tc.blamed.IDs())
			}
			if got := e.ActiveSnapshot().UserBundles().WithoutWithheld().IDs(); !slices.Equal(got, tc.left.IDs()) {
				t.Errorf("active are %v, want %v", got, tc.left.IDs())
			}
			var refused engine.RolledBackError
			if err := e.ActivateBundles(t.Context(), tc.set); !errors.As(err, &refused) || !slices.Equal(refused.Bundles, tc.blamed.IDs()) {
				t.Errorf("it came back: %v", err)
			}
		})
	}
}

func TestACanaryThatWasRolledBackIsNotPromoted(t *testing.T) {
	w := newWatcher()
	e := newEngine(t, builtin, engine.WithObserver(w), engine.WithGrace(50*time.Millisecond))
	stable := platform(t, "rules", freeze)
	try := canary(t, stable, crossProduct, "shop")
	if err := e.ActivateBundles(t.Context(), bundle.Set{stable, try}); err != nil {
		t.Fatal(err)
	}
	until(t, e, w, func() {
		engine.Decide(t.Context(), e, hasty(), in("shop"), facts{N: 1})
		if _, rec := engine.Decide(context.Background(), e, point(), in("other"), facts{N: 1}); rec.Outcome != decision.Decided {
			t.Errorf("elsewhere: %+v", rec)
		}
	})
	if got, rec := engine.Decide(t.Context(), e, point(), in("shop"), facts{Extra: "friday"}); rec.Outcome != decision.Decided || len(got.Holds) != 1 {
		t.Errorf("what it had replaced does not decide: %+v, %+v", got, rec)
	}
	promoted, err := bundle.FromFiles("rules", maps.Clone(try.Files))
	if err != nil {
		t.Fatal(err)
	}
	for what, set := range map[string]bundle.Set{
		"in another namespace": {stable, canary(t, stable, crossProduct, "bank")},
		"everywhere":           {promoted},
		"beside another":       {promoted, platform(t, "more", strings.Replace(freeze, "test.freeze", "test.more", 1))},
	} {
		var refused engine.RolledBackError
		if err := e.CheckRolledBack(set); !errors.As(err, &refused) {
			t.Errorf("%s it came back: %v", what, err)
		}
	}
}
