// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

// asking is a policy of two points, of which each lets other rules of users take part.
const asking = builtin + `
ask := {"go": count(stops) == 0, "total": input.n, "holds": stops}

stops contains h if {
	some name
	some h in data.extend.test[name].stop
}
`

// slowOn is late where the facts say so, as an annotation of one object may.
func slowOn(pkg, extra string) string {
	return strings.NewReplacer("test.slow", "test."+pkg, `"m"} if {`, `"m"} if {
	input.extra == "`+extra+`"`).Replace(crossProduct)
}

// hastier is a point for tests that wait for many late decisions.
func hastier() decision.Point[facts, answer] {
	p := point()
	p.Budget = 40 * time.Millisecond
	return p
}

// denies always holds.
func denies(pkg, reason string) string {
	return "package extend.test." + pkg + "\nhold contains {\"reason\": \"" + reason + "\", \"message\": \"m\"} if input.n > 0\n"
}

func reasons(a answer) (out []string) {
	for _, h := range a.Holds {
		out = append(out, h.Reason)
	}
	slices.Sort(out)
	return out
}

// TestOneSlowBundleTakesNoOtherWithIt makes decisions late by what one object says, far more
// often than it takes to roll a bundle back.
func TestOneSlowBundleTakesNoOtherWithIt(t *testing.T) {
	deny := platform(t, "deny", denies("deny", "Denied"))
	other := tenant(t, "shop", denies("own", "Own"))
	slow := platform(t, "slow", slowOn("slow", "slow"))
	stable := platform(t, "try", denies("try", "Stable"))
	try := canary(t, stable, slowOn("try", "slow"), "shop")
	for name, tc := range map[string]struct {
		history []bundle.Set
		out     bundle.Set
		want    []string // reasons; nil for the strictest answer
	}{
		"what was before it decides again": {
			history: []bundle.Set{{deny, platform(t, "slow", denies("slow", "Quick")), other}, {deny, slow, other}},
			out:     bundle.Set{slow}, want: []string{"Denied", "Own", "Quick"},
		},
		"another bundle came after it": {
			history: []bundle.Set{{platform(t, "slow", denies("slow", "Quick"))}, {slow}, {deny, slow, other}},
			out:     bundle.Set{slow}, want: []string{"Denied", "Own", "Quick"},
		},
		"nothing was before it": {
			history: []bundle.Set{{deny, slow, other}},
			out:     bundle.Set{slow},
		},
		"what was before it was deleted meanwhile": {
			history: []bundle.Set{{platform(t, "slow", denies("slow", "Quick"))}, {deny}, {deny, slow, other}},
			out:     bundle.Set{slow},
		},
		"the package of what was before it is another's by now": {
			history: []bundle.Set{
				{platform(t, "slow", denies("taken", "Quick"))}, {slow},
				{slow, platform(t, "deny", denies("deny", "Denied"), denies("taken", "Taken")), other},
			},
			out: bundle.Set{slow},
		},
		"two at once, of which one has something to go back to": {
			history: []bundle.Set{
				{platform(t, "slow", denies("slow", "Quick"))}, {deny, slow, platform(t, "slug", slowOn("slug", "slow")), other},
			},
			out: bundle.Set{slow, platform(t, "slug", slowOn("slug", "slow"))},
		},
		"a canary, whose place the bundle of its name takes again": {
			history: []bundle.Set{{deny, stable, other}, {deny, stable, try, other}},
			out:     bundle.Set{try}, want: []string{"Denied", "Own", "Stable"},
		},
		"a canary beside no bundle of its name": {
			history: []bundle.Set{{deny, try, other}},
			out:     bundle.Set{try},
		},
		"a tenant": {
			history: []bundle.Set{{deny, tenant(t, "shop", slowOn("own", "slow"))}},
			out:     bundle.Set{tenant(t, "shop", slowOn("own", "slow"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatcher()
			e := newEngine(t, asking, engine.WithObserver(w), engine.WithGrace(20*time.Millisecond), engine.WithShare(1000), engine.WithPoints("test/go", "test/ask"))
			for _, set := range tc.history {
				if err := e.ActivateBundles(t.Context(), set); err != nil {
					t.Fatal(err)
				}
			}
			whole := tc.history[len(tc.history)-1]
			for i, end := 0, time.Now().Add(time.Minute); ; i++ {
				got, rec := engine.Decide(t.Context(), e, hastier(), in("shop"), facts{N: 1, Extra: "slow"})
				if rec.Outcome != decision.Decided && got.Total != -1 {
					t.Errorf("late decisions are %+v", got)
				}
				if rec.Outcome == decision.Decided && !slices.Contains(reasons(got), "Denied") {
					t.Fatalf("the denial is gone: %+v", got)
				}
				w.mu.Lock()
				rolled := 0
				for _, r := range w.rollbacks {
					rolled += len(r.Bundles)
				}
				w.mu.Unlock()
				if rolled >= len(tc.out) && i > 7 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%d bundles are rolled back", rolled)
				}
			}
			w.mu.Lock()
			var bundles, withheld []string
			for _, r := range w.rollbacks {
				bundles, withheld = append(bundles, r.Bundles...), append(withheld, r.Withheld...)
				if len(r.Withheld) > 0 && !slices.Equal(r.Points, []decision.Name{"test/go"}) {
					t.Errorf("withheld from %v", r.Points)
				}
			}
			stands := w.withheld.IDs()
			w.mu.Unlock()
			slices.Sort(bundles)
			slices.Sort(withheld)
			if !slices.Equal(bundles, tc.out.IDs()) || (len(withheld) > 0) != (tc.want == nil) || !slices.Equal(withheld, stands) {
				t.Errorf("rolled back are %v, and withheld %v, told %v; want %v", bundles, withheld, stands, tc.out.IDs())
			}
			got, rec := engine.Decide(t.Context(), e, point(), in("shop"), facts{N: 1})
			switch {
			case tc.want != nil && (rec.Outcome != decision.Decided || !slices.Equal(reasons(got), tc.want)):
				t.Errorf("the answer is %v %s, want %v", reasons(got), rec.Error, tc.want)
			case tc.want == nil && (rec.Outcome != decision.Failed || got.Total != -1 || !strings.Contains(rec.Error, "until it is changed or deleted")):
				t.Errorf("the answer is %+v %s %s, want the strictest one", got, rec.Outcome, rec.Error)
			}
			for _, ns := range []string{"", "bank"} {
				got, rec := engine.Decide(t.Context(), e, point(), in(ns), facts{N: 1})
				if rec.Outcome == decision.Decided && !slices.Contains(reasons(got), "Denied") {
					t.Errorf("in %q the denial is gone: %+v", ns, got)
				}
				if elsewhere := tc.out[0].Canary == nil && tc.out[0].Namespace == ""; (rec.Outcome == decision.Failed) != (elsewhere && tc.want == nil) {
					t.Errorf("in %q the outcome is %s %s", ns, rec.Outcome, rec.Error)
				}
			}
			ask := point()
			ask.Name = "test/ask"
			if _, rec := engine.Decide(t.Context(), e, ask, in("shop"), facts{N: 1}); rec.Outcome != decision.Decided {
				t.Errorf("a point that it takes no part in: %s %s", rec.Outcome, rec.Error)
			}
			var refused engine.RolledBackError
			if err := e.CheckRolledBack(whole); !errors.As(err, &refused) || !slices.Equal(refused.Bundles, tc.out.IDs()) {
				t.Errorf("refused are %v, want %v", err, tc.out.IDs())
			}
			if err := e.CheckRolledBack(slices.DeleteFunc(slices.Clone(whole), func(b *bundle.Bundle) bool { return slices.Contains(tc.out.IDs(), b.ID()) })); err != nil {
				t.Errorf("an innocent bundle is refused: %v", err)
			}
		})
	}
}

func TestABundleIsWithheldUntilItIsChangedOrDeleted(t *testing.T) {
	deny, slow := platform(t, "deny", denies("deny", "Denied")), platform(t, "slow", slowOn("slow", "slow"))
	for name, tc := range map[string]struct {
		next bundle.Set
		lift func(*engine.Engine)
		err  bool
		want bool // it is the strictest answer still
	}{
		"another bundle changes":           {next: bundle.Set{platform(t, "deny", denies("deny", "Denied too")), slow.WithheldCopy()}, want: true},
		"it comes back":                    {next: bundle.Set{deny, slow}, err: true, want: true},
		"it is changed":                    {next: bundle.Set{deny, platform(t, "slow", denies("slow", "Fixed"))}},
		"it is deleted":                    {next: bundle.Set{deny}},
		"it is deleted and made once more": {next: bundle.Set{deny, slow}, lift: func(e *engine.Engine) { e.ForgetBundle("", "slow") }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatcher()
			e := newEngine(t, builtin, engine.WithObserver(w), engine.WithGrace(20*time.Millisecond))
			if err := e.ActivateBundles(t.Context(), bundle.Set{deny, slow}); err != nil {
				t.Fatal(err)
			}
			until(t, e, w, func() { engine.Decide(t.Context(), e, hastier(), in("shop"), facts{N: 1, Extra: "slow"}) })
			if tc.lift != nil {
				tc.lift(e)
			}
			if err := e.ActivateBundles(t.Context(), tc.next); (err != nil) != tc.err {
				t.Errorf("it says %v", err)
			}
			got, rec := engine.Decide(t.Context(), e, point(), in("shop"), facts{N: 1})
			if (rec.Outcome == decision.Failed) != tc.want || tc.want != (got.Total == -1) {
				t.Errorf("the answer is %+v %s %s", got, rec.Outcome, rec.Error)
			}
		})
	}
}

// TestWhatIsWithheld has bundles that are withheld from the beginning, beside a tenant's whose rules are compiled apart.
func TestWhatIsWithheld(t *testing.T) {
	withhold := func(text string, opts ...bundle.Option) *bundle.Bundle {
		files := map[string]string{"p.rego": text}
		if strings.HasPrefix(text, "{") {
			files = map[string]string{"extend/test/own/data.json": text}
		}
		b, err := bundle.FromFiles("b", files, append(opts, bundle.AsWithheld())...)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const rules, data, unread = `package extend.test.own
hold contains {"reason": "Never", "message": "m"} if input.n > 1000`, `{"hold": [{"reason": "Data", "message": "m"}]}`, `{"unread": 1}`
	shop := bundle.AsTenant("shop")
	for name, tc := range map[string]struct {
		withheld  *bundle.Bundle
		shop, all bool // decisions there are the strictest answers
	}{
		"of the platform, by its rules":      {withhold(rules), true, true},
		"of the platform, by its data":       {withhold(data), true, true},
		"of the platform, by data not read":  {withhold(unread), false, false},
		"a canary, by its rules":             {withhold(rules, bundle.AsCanary("shop")), true, false},
		"a canary, by its data":              {withhold(data, bundle.AsCanary("shop")), true, false},
		"of a namespace, by its rules":       {withhold(rules, shop), true, false},
		"of a namespace, by its data":        {withhold(data, shop), true, false},
		"of a namespace, by data not read":   {withhold(unread, shop), false, false},
		"of the platform, for another point": {withhold(strings.Replace(rules, "hold contains", "stop contains", 1)), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			spared := func(s decision.Subject) bool { return s.Kind == "Bundle" }
			e := newEngine(t, asking, engine.WithPoints("test/go", "test/ask"), engine.WithSpared(spared), engine.WithPatience(20))
			other := tenant(t, "shop", denies("other", "Own"))
			if err := e.ActivateBundles(t.Context(), bundle.Set{other, tc.withheld}); err != nil {
				t.Fatal(err)
			}
			for ns, strict := range map[string]bool{"shop": tc.shop, "bank": tc.all, "": tc.all} {
				got, rec := engine.Decide(t.Context(), e, point(), in(ns), facts{N: 1})
				if (rec.Outcome == decision.Failed) != strict || strict != (got.Total == -1) {
					t.Errorf("in %q the answer is %+v %s %s", ns, got, rec.Outcome, rec.Error)
				}
				of := in(ns)
				of.Kind = "Bundle"
				if got, rec := engine.Decide(t.Context(), e, point(), of, facts{N: 1}); rec.Outcome != decision.Decided || (ns == "shop") != slices.Equal(reasons(got), []string{"Own"}) {
					t.Errorf("of a bundle in %q the answer is %+v %s %s", ns, got, rec.Outcome, rec.Error)
				}
			}
			if got := slices.Contains(e.PointsWithheld(tc.withheld), "test/go"); got != tc.shop {
				t.Errorf("it is withheld from test/go: %t", got)
			}
			if got := e.PointsWithheld(other); len(got) > 0 {
				t.Errorf("a bundle that decides is withheld from %v", got)
			}
		})
	}
}
