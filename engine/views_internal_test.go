// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/proptest"
)

// readBuiltin reads and compiles the built-in policies once for all tests.
var readBuiltin = sync.OnceValues(func() (*Engine, error) { return New(policies.Builtin) })

func builtinEngine(t *testing.T, opts ...Option) *Engine {
	t.Helper()
	first, err := readBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	e, err := FromBundle(first.builtin, append([]Option{WithCompiled(first.base.CompiledPolicies())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func read(t *testing.T, name string, files map[string]string, opts ...bundle.Option) *bundle.Bundle {
	t.Helper()
	b, err := bundle.FromFiles(name, files, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// holds is a bundle of a namespace that holds the rollouts of workloads with a label.
func holds(t *testing.T, namespace, label string) *bundle.Bundle {
	t.Helper()
	return read(t, "own", map[string]string{"own.rego": `package extend.rollout.own
hold contains {"reason": "Own", "message": "m"} if input.workload.labels.x == "` + label + `"`}, bundle.AsTenant(namespace))
}

func plan(label string) rollout.PlanInput {
	return rollout.PlanInput{Update: 3, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}, Workload: rollout.Workload{Labels: map[string]string{"x": label}}}
}

// whole is a snapshot of the bundles of one namespace, all compiled together, as if they held everywhere.
func whole(t *testing.T, e *Engine, set bundle.Set) *Snapshot {
	t.Helper()
	all := append(bundle.Set{e.builtin}, set...)
	v, err := newView(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	return &Snapshot{revision: v.revision, set: set, cluster: newScope(v, all, nil), views: e.views}
}

// drawPolicies draws bundles of the platform, and of three namespaces.
func drawPolicies(t *testing.T, r *rand.Rand) bundle.Set {
	t.Helper()
	set := bundle.Set{}
	body := func(name string) string {
		return []string{" if input.now > 5", " if helper", " if data.extend." + name + ".list[_] == input.x", "", " if true\nelse := 1 if input.n == 2"}[r.IntN(4)] + "\nhelper if { not input.paused }\n"
	}
	answer := map[string]string{
		"hold": `hold contains {"reason": "R", "message": "m"}`, "deny": `deny contains {"reason": "R", "message": "m"}`, "rank": `rank := {"a": 1}`,
		"guard":  `guard contains {"group": "apps", "resource": "deployments", "operations": ["DELETE"]}`,
		"exempt": `exempt contains {"reason": "R", "message": "m"}`, "skip": `skip contains {"name": "a", "reason": "R"}`, "add": `add contains {"name": "a", "reason": "R"}`, "settings": `settings := {}`,
	}
	draw := func(name string, kind bundle.Kind, opts ...bundle.Option) {
		files := map[string]string{}
		for _, x := range bundle.AllExtensions() {
			if x.Answer == nil || r.IntN(6) != 0 || kind == bundle.Tenant && !x.Stricter {
				continue
			}
			pkg := x.Domain + "." + name + x.Rule
			files[pkg+".rego"] = "package extend." + pkg + "\n" + answer[x.Rule] + body(pkg)
			if r.IntN(2) == 0 {
				files["extend/"+strings.ReplaceAll(pkg, ".", "/")+"/data.json"] = `{"list": [null, 1, "a"]}`
			}
		}
		if kind == bundle.Platform && r.IntN(3) == 0 {
			files["override.rego"] = `package override.node
images := {"holds": [h | some h in data.extend.node[_].hold], "denied": []}`
		}
		set = append(set, read(t, name, files, opts...))
	}
	draw("stable", bundle.Platform)
	if r.IntN(2) == 0 {
		draw("stable", bundle.Platform, bundle.AsCanary("a", "d"))
	}
	for _, ns := range []string{"a", "b", "c"} {
		draw("own", bundle.Tenant, bundle.AsTenant(ns))
	}
	return set
}

func TestWhatIsCompiledOnDemandDecidesAsAllTogether(t *testing.T) {
	tiny, large := builtinEngine(t, WithViewBytes(5<<20), WithPatience(60)), builtinEngine(t, WithViewBytes(1<<30), WithPatience(60))
	rounds := 3
	if proptest.Race {
		rounds = 1
	}
	parts, decided := 0, 0
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		set := drawPolicies(t, r)
		for _, e := range []*Engine{tiny, large} {
			if err := e.ActivateBundles(t.Context(), set); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		for _, ns := range []string{"a", "b", "c", "d", ""} {
			subject := decision.Subject{Namespace: ns, Name: "web"}
			want := whole(t, large, set.DecidingIn(ns))
			for _, i := range r.Perm(len(catalog.All())) {
				p := catalog.All()[i]
				for _, s := range []*Snapshot{tiny.ActiveSnapshot(), large.ActiveSnapshot()} {
					if s.IsPointExtended(p.Name, subject) != want.IsPointExtended(p.Name, subject) || s.IsPointReplaced(p.Name, subject) != want.IsPointReplaced(p.Name, subject) || s.IsPointDefined(p.Name, subject) != want.IsPointDefined(p.Name, subject) {
						t.Errorf("seed %d: %s in %q: extended %v, replaced %v, defined %v", seed, p.Name, ns, s.IsPointExtended(p.Name, subject), s.IsPointReplaced(p.Name, subject), s.IsPointDefined(p.Name, subject))
					}
					if s.RevisionFor(subject) != want.RevisionFor(subject) || !slices.Equal(s.BundlesFor(subject), want.BundlesFor(subject)) {
						t.Errorf("seed %d: in %q %v decide, want %v", seed, ns, s.BundlesFor(subject), want.BundlesFor(subject))
					}
				}
				if tiny.ActiveSnapshot().scopeForSubject(subject).takesPart(p.Name) {
					parts++
				}
				in := reflect.New(p.In).Elem().Interface()
				answer, rec := DecideOn(t.Context(), large, want, p, subject, in)
				if rec.Outcome == decision.Decided {
					decided++
				}
				for _, e := range []*Engine{tiny, large} {
					got, now := DecideOn(t.Context(), e, e.ActiveSnapshot(), p, subject, in)
					slices.Sort(now.Rules)
					slices.Sort(rec.Rules)
					if asJSON(t, got) != asJSON(t, answer) || now.Outcome != rec.Outcome || !slices.Equal(now.Rules, rec.Rules) {
						t.Errorf("seed %d: %s in %q: %s %s %v %s, want %s %s %v %s", seed, p.Name, ns, now.Outcome, asJSON(t, got), now.Rules, now.Error, rec.Outcome, asJSON(t, answer), rec.Rules, rec.Error)
					}
				}
			}
		}
		if held := tiny.views.held; held > 5<<20 {
			t.Errorf("%d bytes are kept", held)
		}
	}
	if parts < 10*rounds || decided < 20*rounds {
		t.Errorf("namespaces took part in %d answers, and %d were decided", parts, decided)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOnlyWhatTakesPartIsCompiled(t *testing.T) {
	e := builtinEngine(t)
	if err := e.ActivateBundles(t.Context(), bundle.Set{holds(t, "shop", "y")}); err != nil {
		t.Fatal(err)
	}
	subject := decision.Subject{Namespace: "shop"}
	in := e.ActiveSnapshot().scopeForSubject(subject)
	modules, _ := in.viewModules()
	for key := range modules {
		if strings.Contains(key, "/protection/") || strings.Contains(key, "/placement/") {
			t.Errorf("%s is compiled for a bundle that extends rollout", key)
		}
	}
	if len(modules) < 2 || len(modules) >= len(in.platform.modules) {
		t.Errorf("compiled are %v", slices.Sorted(maps.Keys(modules)))
	}
	for name, want := range map[decision.Name]bool{"rollout/plan": true, "protection/deletion": false, "placement/subset": false} {
		if got := in.takesPart(name); got != want {
			t.Errorf("in %s: %v", name, got)
		}
	}
}

func TestPoliciesOfAnotherEngineAreNotCompiledAgain(t *testing.T) {
	hold := read(t, "rules", map[string]string{"r.rego": "package extend.rollout.r\n\nhold contains {\"reason\": \"R\", \"message\": \"m\"}\n"})
	other := read(t, "rules", map[string]string{"r.rego": "package extend.rollout.r\n\nhold contains {\"reason\": \"S\", \"message\": \"m\"}\n"})
	first := builtinEngine(t)
	if err := first.ActivateBundles(t.Context(), bundle.Set{hold}); err != nil {
		t.Fatal(err)
	}
	e := builtinEngine(t, WithCompiled(CompiledPolicies{}, first.ActiveSnapshot().CompiledPolicies()))
	if e.base.cluster.platform != first.base.cluster.platform {
		t.Error("the built-in policies are compiled again")
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{hold}); err != nil {
		t.Fatal(err)
	}
	if e.ActiveSnapshot().cluster.platform != first.ActiveSnapshot().cluster.platform {
		t.Error("the same bundles are compiled again")
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{other}); err != nil {
		t.Fatal(err)
	}
	reason := func(e *Engine) string {
		plan, _ := Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, rollout.PlanInput{Strategy: rollout.Strategy{Type: "RollingUpdate"}, Update: 3})
		return plan.Holds[0].Reason
	}
	if got := reason(e) + reason(first); got != "SR" {
		t.Errorf("the engines hold by %s, want SR", got)
	}
}

func TestADecisionWhosePoliciesAreNotCompiledInTimeIsTheStrictFallback(t *testing.T) {
	e := builtinEngine(t, WithPatience(60))
	if err := e.ActivateBundles(t.Context(), bundle.Set{holds(t, "shop", "y")}); err != nil {
		t.Fatal(err)
	}
	subject := decision.Subject{Namespace: "shop", Name: "web"}
	p := rollout.PlanPoint()
	forget(e)
	release, err := e.views.lane.AcquireTurn(t.Context()) // another namespace is being compiled
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	got, rec := Decide(ctx, e, p, subject, plan("n"))
	if rec.Outcome != decision.TimedOut || !strings.Contains(rec.Error, "not compiled yet") {
		t.Errorf("got %s: %s", rec.Outcome, rec.Error)
	}
	if want := p.EraseTypes().Undecided(plan("n"), true); asJSON(t, got) != asJSON(t, want) {
		t.Errorf("got %+v, want the strict fallback %+v", got, want)
	}
	if _, rec := Decide(t.Context(), e, p, decision.Subject{Namespace: "bank"}, plan("y")); rec.Outcome != decision.Decided {
		t.Errorf("elsewhere: %s %s", rec.Outcome, rec.Error)
	}
	if !e.ActiveSnapshot().IsPointExtended(p.Name, subject) || !e.ActiveSnapshot().IsPointDefined(p.Name, subject) {
		t.Error("whether it takes part depends on compiling")
	}
	release()
	if got, rec := Decide(t.Context(), e, p, subject, plan("y")); rec.Outcome != decision.Decided || len(got.Holds) == 0 {
		t.Errorf("later: %s %s %+v", rec.Outcome, rec.Error, got.Holds)
	}
	if spent := e.shares.shareForTenant("shop").timeWithinWindow(time.Now(), ""); spent == 0 {
		t.Error("it cost the namespace nothing")
	}
}

// Policies of a namespace that take indefinitely to be compiled are refused, and the error says so: to what puts them in, and to what
// decides by them. Those of others are compiled meanwhile. Once they are compiled after all, they decide.
func TestPoliciesThatAreNotCompiledWithinTheLimit(t *testing.T) {
	told := make(chan string, 10)
	e := builtinEngine(t, WithPatience(60), WithInvalid(func(namespace string, err error) { told <- namespace + ": " + err.Error() }))
	if err := e.ActivateBundles(t.Context(), bundle.Set{holds(t, "shop", "y"), holds(t, "bank", "y")}); err != nil {
		t.Fatal(err)
	}
	forget(e)
	e.views.limit.Store(int64(20 * time.Millisecond))
	shop := e.ActiveSnapshot().scopes["shop"]
	end, affected := make(chan struct{}), shop.affected
	shop.affected = func() map[*ast.Rule]bool { <-end; return affected() }
	built := e.views.ensureBuild(shop, false, nil)
	if got := <-told; !strings.HasPrefix(got, "shop: the policies of namespace shop do not compile with those of the platform: compiling them did not end within 20ms") {
		t.Errorf("told is %q", got)
	}
	e.views.limit.Store(int64(compileLimit))
	decide := func(namespace string) decision.Record {
		_, rec := Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{Namespace: namespace, Name: "web"}, plan("y"))
		return rec
	}
	if rec := decide("shop"); rec.Outcome != decision.Failed || !strings.Contains(rec.Error, "did not end within") {
		t.Errorf("its own decision: %s %s", rec.Outcome, rec.Error)
	}
	if rec := decide("bank"); rec.Outcome != decision.Decided {
		t.Errorf("another one's: %s %s", rec.Outcome, rec.Error)
	}
	if err := e.ActivateBundles(t.Context(), append(slices.Clone(e.ActiveSnapshot().UserBundles()), holds(t, "new", "y"))); err != nil {
		t.Errorf("a bundle of another namespace is put in: %v", err)
	}
	if err := e.views.checkScope(t.Context(), shop); !errors.As(err, new(UnfitError)) || !errors.As(err, new(SlowError)) {
		t.Errorf("it is put in itself: %v", err)
	}
	close(end)
	if <-built.done; built.err != nil {
		t.Fatal(built.err)
	}
	if rec := decide("shop"); rec.Outcome != decision.Decided {
		t.Errorf("later: %s %s", rec.Outcome, rec.Error)
	}
}

// What one namespace has compiled indefinitely is bounded, whatever the platform changes meanwhile, and keeps no other from being compiled.
func TestSlowCompilationsOfOneNamespaceAreBounded(t *testing.T) {
	e := builtinEngine(t, WithPatience(60))
	e.views.slowOf["shop"] = mostOwnSlow
	if err := e.ActivateBundles(t.Context(), bundle.Set{holds(t, "shop", "y")}); !errors.As(err, new(UnfitError)) || !errors.As(err, new(SlowError)) {
		t.Errorf("one more: %v", err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{holds(t, "bank", "y")}); err != nil {
		t.Errorf("one of another namespace: %v", err)
	}
	delete(e.views.slowOf, "shop")
	if err := e.ActivateBundles(t.Context(), bundle.Set{holds(t, "shop", "y")}); err != nil || len(e.views.slowOf) != 0 {
		t.Errorf("once they have ended: %v, counted %v", err, e.views.slowOf)
	}
}

// Decisions that always wait for some policies do not keep others from being checked.
func TestAllNamespacesAreCheckedThoughDecisionsWait(t *testing.T) {
	told := make(chan string, 10)
	e := builtinEngine(t, WithInvalid(func(namespace string, _ error) { told <- namespace }))
	var set bundle.Set
	for _, ns := range []string{"a", "b"} {
		set = append(set, read(t, "own", map[string]string{"own.rego": `package extend.rollout.own
hold contains {"reason": "Own", "message": "m"} if input.workload.labels.x == "y"
list := true`}, bundle.AsTenant(ns)))
	}
	if err := e.ActivateBundles(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	e.views.waiting.Add(1) // as while there is always one that waits
	counts := read(t, "counts", map[string]string{"p.rego": `package extend.rollout.counts
hold contains {"reason": "Many", "message": "m"} if count(data.extend.rollout.own.list) > 3`})
	if err := e.ActivateBundles(t.Context(), append(bundle.Set{counts}, set...)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a", "b"} {
		select {
		case got := <-told:
			if got != want {
				t.Errorf("told is %s, want %s", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("namespace %s is not checked", want)
		}
	}
}

// forget empties what an engine keeps.
func forget(e *Engine) {
	e.views.mu.Lock()
	defer e.views.mu.Unlock()
	e.views.held, e.views.of = 0, map[string]*list.Element{}
	e.views.order.Init()
}

func TestWhatDoesNotCompileWithAnotherPlatformIsStrictAndTold(t *testing.T) {
	told := make(chan string, 10)
	e := builtinEngine(t, WithPatience(60), WithInvalid(func(namespace string, err error) { told <- namespace + ": " + err.Error() }))
	own := read(t, "own", map[string]string{"own.rego": `package extend.rollout.own
hold contains {"reason": "Own", "message": "m"} if input.workload.labels.x == "y"
list := true`}, bundle.AsTenant("shop"))
	counts := read(t, "counts", map[string]string{"p.rego": `package extend.rollout.counts
hold contains {"reason": "Many", "message": "m"} if count(data.extend.rollout.own.list) > 3`})
	if err := e.ActivateBundles(t.Context(), bundle.Set{own, holds(t, "bank", "y")}); err != nil {
		t.Fatal(err)
	}
	before := e.ActiveSnapshot()
	if err := e.ActivateBundles(t.Context(), bundle.Set{counts, own, holds(t, "bank", "y")}); err != nil {
		t.Fatalf("the platform's change waits for a namespace: %v", err)
	}
	if got := <-told; !strings.HasPrefix(got, "shop: the policies of namespace shop do not compile with those of the platform") {
		t.Errorf("told is %q", got)
	}
	if err := e.ActiveSnapshot().NamespaceProblem("shop"); err == nil || e.ActiveSnapshot().NamespaceProblem("bank") != nil || before.NamespaceProblem("shop") != nil {
		t.Errorf("the problem is %v", err)
	}
	p := rollout.PlanPoint()
	for range 2 {
		got, rec := Decide(t.Context(), e, p, decision.Subject{Namespace: "shop", Name: "web"}, plan("n"))
		if rec.Outcome != decision.Failed || !strings.Contains(rec.Error, "do not compile") || asJSON(t, got) != asJSON(t, p.EraseTypes().Undecided(plan("n"), true)) {
			t.Errorf("got %s %s: %+v, want the strict fallback", rec.Outcome, rec.Error, got)
		}
	}
	if _, rec := Decide(t.Context(), e, p, decision.Subject{Namespace: "bank", Name: "web"}, plan("n")); rec.Outcome != decision.Decided {
		t.Errorf("elsewhere: %s %s", rec.Outcome, rec.Error)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{counts, holds(t, "bank", "y")}); err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{counts, own, holds(t, "bank", "y")}); err == nil {
		t.Error("a new bundle that does not compile is let in")
	}
}

func TestBundlesOfNamespacesHaveABoundTogether(t *testing.T) {
	large := func(ns string, n int) *bundle.Bundle {
		return read(t, "own", map[string]string{"own.rego": "package extend.rollout.own\nhold contains {\"reason\": \"Own\", \"message\": \"m\"} if data.extend.rollout.own.list[_] == input.x",
			"extend/rollout/own/data.json": `{"list": [` + strings.Repeat("1,", n) + `1]}`}, bundle.AsTenant(ns))
	}
	a, b, c := large("a", 1000), large("b", 1000), large("c", 1000)
	e := builtinEngine(t, WithTenantBytes(2*a.HeapBytes()))
	if err := e.ActivateBundles(t.Context(), bundle.Set{a, b}); err != nil {
		t.Fatal(err)
	}
	var refused TooLargeError
	if err := e.ActivateBundles(t.Context(), bundle.Set{a, b, c}); !errors.As(err, &refused) || refused.Bundle != c.ID() || !strings.Contains(err.Error(), "make it smaller") {
		t.Errorf("got %v", err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{a, large("b", 2000)}); !errors.As(err, &refused) {
		t.Errorf("one that grows: %v", err)
	}
	if got := len(e.ActiveSnapshot().UserBundles()); got != 2 {
		t.Errorf("%d bundles stay", got)
	}
	e.tenantBytes = a.HeapBytes() // as after a restart with less memory
	platform := read(t, "large", map[string]string{"p.rego": "package extend.rollout.p\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if input.paused"})
	if err := e.ActivateBundles(t.Context(), bundle.Set{platform, a, b}); err != nil {
		t.Errorf("the platform's, with those that are active: %v", err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{platform, a, large("b", 500)}); err != nil {
		t.Errorf("one that shrinks: %v", err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{platform, read(t, "huge", map[string]string{"extend/rollout/q/data.json": `{"list": [` + strings.Repeat("1,", 10000) + `1]}`}), a}); err != nil {
		t.Errorf("the platform's do not count: %v", err)
	}
}

func TestAViewThatCouldNotBeKeptIsRefused(t *testing.T) {
	e := builtinEngine(t, WithViewBytes(1<<10))
	if err := e.ActivateBundles(t.Context(), bundle.Set{holds(t, "shop", "y")}); err == nil || !strings.Contains(err.Error(), "make them smaller") {
		t.Errorf("got %v", err)
	}
}

func TestNamespacesAreCompiledOnceForAllWhoAsk(t *testing.T) {
	e := builtinEngine(t, WithViewBytes(2<<20), WithPatience(60), WithShare(1000))
	set := bundle.Set{}
	for i := range 4 {
		set = append(set, holds(t, fmt.Sprintf("ns%d", i), "y"))
	}
	if err := e.ActivateBundles(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	platform := read(t, "p", map[string]string{"p.rego": "package extend.rollout.p\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if input.paused"})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 10 {
				label := []string{"n", "y"}[(i+j)%2]
				got, rec := Decide(context.Background(), e, rollout.PlanPoint(), decision.Subject{Namespace: fmt.Sprintf("ns%d", (i+j)%4), Name: "web"}, plan(label))
				if rec.Outcome != decision.Decided || (len(got.Holds) > 0) != (label == "y") {
					t.Errorf("%s %s %+v", rec.Outcome, rec.Error, got.Holds)
				}
			}
		})
	}
	for i := range 4 {
		if err := e.ActivateBundles(t.Context(), append(bundle.Set{platform}[:i%2], set...)); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}

// A process that starts makes bundles active one after the other, by their names. Which of them is new is what it was before.
func TestTheNewestIsTheOneThatWasLetInLast(t *testing.T) {
	hold := func(name string, since time.Time) *bundle.Bundle {
		return read(t, name, map[string]string{"p.rego": "package extend.rollout." + name + "\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if input.paused"}, bundle.WithSince(since))
	}
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for name, tc := range map[string]struct {
		a, b, c time.Time
		want    string
	}{
		"by when they were let in":   {at(3), at(1), at(2), "b c a"},
		"together, as they came":     {at(1), at(1), at(1), "a b c"},
		"where it is not known of b": {at(3), time.Time{}, at(2), "a b c"},
	} {
		e := builtinEngine(t)
		var set bundle.Set
		for _, b := range []*bundle.Bundle{hold("a", tc.a), hold("b", tc.b), hold("c", tc.c)} {
			if set = append(set, b); e.ActivateBundles(t.Context(), set) != nil {
				t.Fatal("it is not activated")
			}
		}
		var names []string
		for _, b := range e.oldestFirst(bundle.Set{set[2], set[1], set[0]}) {
			names = append(names, b.Name)
		}
		if got := strings.Join(names, " "); got != tc.want {
			t.Errorf("%s: the oldest first are %s, want %s", name, got, tc.want)
		}
	}
}

func TestANamespaceIsNotToBlameForWhatItTakesNoPartIn(t *testing.T) {
	e := builtinEngine(t, WithPatience(60))
	if err := e.ActivateBundles(t.Context(), bundle.Set{holds(t, "shop", "y")}); err != nil {
		t.Fatal(err)
	}
	s, subject := e.ActiveSnapshot(), decision.Subject{Namespace: "shop", Name: "web"}
	for point, want := range map[decision.Name]int{"protection/guards": 0, "rollout/plan": 1} {
		ask := &decisionRequest{name: point, budget: time.Minute, subject: subject}
		v, err := s.viewOf(point, subject)
		if err != nil {
			t.Fatal(err)
		}
		q, err := v.preparedQuery(t.Context(), point)
		if err != nil {
			t.Fatal(err)
		}
		if guilty := e.findGuilty(s, newEvaluation(q, ast.NewObject(), ask), true); len(guilty) != want {
			t.Errorf("of a decision of %s that is stuck %v are to blame", point, guilty.IDs())
		}
	}
}

// TestPointsOfABundleThatOthersReferTo holds that a bundle takes part in the points whose rules refer to what it has, be it
// a rule or data.
func TestPointsOfABundleThatOthersReferTo(t *testing.T) {
	for name, ref := range map[string]string{"data": "data.extend.node.a.freeze.on", "a rule": "data.extend.node.a.frozen"} {
		e := builtinEngine(t, WithPatience(60))
		a := read(t, "a", map[string]string{"a.rego": "package extend.node.a\nfrozen := true", "extend/node/a/data.json": `{"freeze": {"on": true}}`})
		b := read(t, "b", map[string]string{"b.rego": "package extend.rollout.b\nhold contains {\"reason\": \"B\", \"message\": \"m\"} if " + ref})
		if err := e.ActivateBundles(t.Context(), bundle.Set{a, b}); err != nil {
			t.Fatal(err)
		}
		points := e.ActiveSnapshot().PointsOf(a)
		s, err := e.CompileMissing(t.Context(), bundle.Set{b}, []Missing{{Bundle: "a", Points: points, Reason: "gone"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Swap(s); err != nil {
			t.Fatal(err)
		}
		subject := decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "w"}
		if out, rec := Decide(t.Context(), e, rollout.PlanPoint(), subject, plan("x")); rec.Outcome == decision.Decided && len(out.Holds) == 0 {
			t.Errorf("%s: nothing is held while a is missing, which takes part in %v", name, points)
		}
	}
}

// TestWhatIsTooLargeToBeCompiledIsUnfit holds that a bundle which a larger one of the platform leaves no room for is
// refused by an error that says that it stays.
func TestWhatIsTooLargeToBeCompiledIsUnfit(t *testing.T) {
	var source strings.Builder
	source.WriteString("package extend.rollout.platform\nhold contains {\"reason\": \"P\", \"message\": \"m\"} if input.workload.labels.x == \"held\"\n")
	for i := range 1200 {
		fmt.Fprintf(&source, "rule%d if { input.workload.labels.x == \"%d\" }\n", i, i)
	}
	platform, own := read(t, "platform", map[string]string{"p.rego": source.String()}), holds(t, "shop", "y")
	_, err := builtinEngine(t, WithViewBytes(1<<20)).CompileBundles(t.Context(), bundle.Set{platform, own})
	if unfit := (UnfitError{}); !errors.As(err, &unfit) || unfit.Namespace != "shop" || !strings.Contains(err.Error(), "make them smaller") {
		t.Errorf("got %v", err)
	}
}

// TestABundleThatFailsUndoesNoCanary holds that a bundle of a namespace which fails does not have the platform's bundle decide
// that a canary of the namespace is in place of.
func TestABundleThatFailsUndoesNoCanary(t *testing.T) {
	e := builtinEngine(t, WithPatience(60))
	exempts := read(t, "ex", map[string]string{"e.rego": "package extend.protection.ex\nexempt contains {\"reason\": \"Fire\", \"message\": \"m\"} if true"})
	canary := read(t, "ex", map[string]string{"e.rego": "package extend.protection.ex\ndeny contains {\"reason\": \"No\", \"message\": \"m\"} if true"}, bundle.AsCanary("shop"))
	fails := read(t, "own", map[string]string{"own.rego": "package extend.protection.own\ndeny contains {\"reason\": \"X\", \"message\": \"m\"} if to_number(input.object.name) == 1"}, bundle.AsTenant("shop"))
	if err := e.ActivateBundles(t.Context(), bundle.Set{exempts, canary, fails}); err != nil {
		t.Fatal(err)
	}
	in := protection.DeletionInput{Request: protection.Request{Operation: protection.Delete}, Object: protection.Object{Kind: "ConfigMap", Namespace: "shop", Name: "w"}}
	out, rec := Decide(t.Context(), e, protection.DeletionPoint(), decision.Subject{Kind: "ConfigMap", Namespace: "shop", Name: "w"}, in)
	if rec.Outcome == decision.Decided || out.Allow {
		t.Errorf("it is %s, allowed %v: %+v", rec.Outcome, out.Allow, out)
	}
}

// A trial that does not end leaves its slot to others, so that the next bundles can be judged. There is an end to that too, and
// decisions have as many workers as before, however few there are.
func TestTrialsThatDoNotEndKeepNoOthersFromBeingMade(t *testing.T) {
	for _, workers := range []int{2 * mostEndless, 4} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) { makeEndlessTrials(t, workers) })
	}
}

func makeEndlessTrials(t *testing.T, workers int) {
	t.Helper()
	e := builtinEngine(t, WithParallel(workers), WithGrace(time.Millisecond))
	v := e.ActiveSnapshot().cluster.platform
	q, err := v.preparedQuery(t.Context(), "rollout/plan")
	if err != nil {
		t.Fatal(err)
	}
	end, late := make(chan struct{}), 0
	release := sync.OnceFunc(func() { close(end) })
	defer release()
	try := func() *evaluation {
		t.Helper()
		input, err := e.codec.Encode(rollout.PlanInput{})
		if err != nil {
			t.Fatal(err)
		}
		ev := newEvaluation(q, input, &decisionRequest{
			name: "rollout/plan", budget: 50 * time.Millisecond, judging: true,
			answer: func(ast.Value, string) error { <-end; return nil },
		})
		_, _ = e.runEvaluation(t.Context(), ev)
		return ev
	}
	var all []*evaluation
	for len(e.shares.judging) < cap(e.shares.judging) && late < 2*mostEndless+cap(e.shares.judging) {
		ev := try()
		if !ev.late {
			t.Fatalf("after %d trials that do not end none can be made", late)
		}
		for want := int32(late + 1); e.shares.endless.Load() < want && !ev.hasEnded(); {
			time.Sleep(time.Millisecond)
		}
		if !ev.hasEnded() { // else the machine was so busy that it was stopped before its answer was read
			late++
			all = append(all, ev)
		}
		for len(e.shares.judging) > max(0, late-mostEndless) { // its slot is left a moment after it is counted
			time.Sleep(time.Millisecond)
		}
	}
	if want := mostEndless + cap(e.shares.judging); late != want {
		t.Errorf("%d trials that do not end were made, want %d", late, want)
	}
	for i := range workers { // each of them holds a worker
		input, err := e.codec.Encode(rollout.PlanInput{})
		if err != nil {
			t.Fatal(err)
		}
		began := make(chan struct{})
		ev := newEvaluation(q, input, &decisionRequest{name: "rollout/plan", budget: time.Minute, answer: func(ast.Value, string) error { close(began); <-end; return nil }})
		go func() { _, _ = e.runEvaluation(context.WithoutCancel(t.Context()), ev) }()
		select {
		case <-began:
		case <-time.After(10 * time.Second):
			t.Fatalf("of %d workers %d are left", workers, i)
		}
		all = append(all, ev)
	}
	release()
	for _, ev := range all {
		<-ev.done
	}
	for e.shares.endless.Load() > 0 || len(e.shares.judging) > 0 {
		time.Sleep(time.Millisecond)
	}
}

// One tenant's trials that do not end keep those with bundles of others from nothing.
func TestTrialsOfOneTenantThatDoNotEndAreBounded(t *testing.T) {
	e := builtinEngine(t, WithParallel(16), WithGrace(time.Millisecond))
	v := e.ActiveSnapshot().cluster.platform
	q, err := v.preparedQuery(t.Context(), "rollout/plan")
	if err != nil {
		t.Fatal(err)
	}
	input, err := e.codec.Encode(rollout.PlanInput{})
	if err != nil {
		t.Fatal(err)
	}
	own := *q
	own.tenant = "shop"
	ask := &decisionRequest{name: "rollout/plan", budget: time.Minute, answer: func(ast.Value, string) error { return nil }}
	var ended []func()
	for range mostOwnEndless {
		if !e.shares.mayTry("shop") {
			t.Fatalf("after %d none may be made", len(ended))
		}
		ended = append(ended, e.shares.keepRunning(newEvaluation(&own, input, ask)))
	}
	if e.shares.mayTry("shop") || !e.shares.mayTry("bank") || !e.shares.mayTry("") {
		t.Error("after them another one of the tenant may be made, or none of others")
	}
	if how := e.tryAgain(v, newEvaluation(q, input, ask)); how != inTime {
		t.Errorf("a trial without bundles of tenants is %d", how)
	}
	for _, f := range ended {
		f()
	}
	if !e.shares.mayTry("shop") || len(e.shares.endlessOf) > 0 {
		t.Error("none may be made after all have ended")
	}
}

// Trials that do not end may keep what trials need. That none can be made says nothing of a bundle, and who is found to blame
// stays so while the evaluation goes on.
func TestAnEvaluationThatDoesNotEndIsJudgedOnce(t *testing.T) {
	for name, tc := range map[string]struct{ before, withheld int }{
		"where nothing is free at first": {before: 0, withheld: 0},
		"where nothing is free any more": {before: 1, withheld: 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := builtinEngine(t, WithPatience(60), WithGrace(time.Millisecond))
			if err := e.ActivateBundles(t.Context(), bundle.Set{holds(t, "shop", "y")}); err != nil {
				t.Fatal(err)
			}
			s, subject := e.ActiveSnapshot(), decision.Subject{Namespace: "shop", Name: "web"}
			v, err := s.viewOf("rollout/plan", subject)
			if err != nil {
				t.Fatal(err)
			}
			q, err := v.preparedQuery(t.Context(), "rollout/plan")
			if err != nil {
				t.Fatal(err)
			}
			ev := newEvaluation(q, ast.NewObject(), &decisionRequest{name: "rollout/plan", budget: 10 * time.Second, subject: subject})
			for i := range Strikes {
				if i == tc.before {
					ev.ask.budget = 10 * time.Millisecond
					for range cap(e.shares.judging) {
						e.shares.judging <- struct{}{}
					}
				}
				e.investigateLate(s, ev)
				for !e.watch.claimInvestigation() {
					time.Sleep(time.Millisecond)
				}
				e.watch.releaseInvestigation()
			}
			if got := e.ActiveSnapshot().set.WithheldBundles(); len(got) != tc.withheld {
				t.Errorf("withheld are %v", got.IDs())
			}
		})
	}
}
