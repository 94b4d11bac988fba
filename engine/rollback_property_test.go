// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

// lateness is which bundles of a property test are late for an object, alone or beside another
// one. Their policies are quick: that a decision is late is drawn, and not measured.
type lateness struct {
	alone    map[string]bool
	together map[[2]string]bool
}

// culprits are the bundles that are late, or late beside another one.
func (l lateness) culprits(set bundle.Set) (out []string) {
	ids := set.IDs()
	for _, id := range ids {
		beside := func(other string) bool { return l.together[[2]string{id, other}] || l.together[[2]string{other, id}] }
		if l.alone[id] || slices.ContainsFunc(ids, beside) {
			out = append(out, id)
		}
	}
	return out
}

const holdsOnly = `package test
go := {"holds": [h | some name; some h in data.extend.test[name].hold]}
`

type heldBy struct {
	Holds []decision.Hold `json:"holds"`
}

func heldPoint() decision.Point[struct{}, heldBy] {
	return decision.Point[struct{}, heldBy]{
		Name: "test/go", Budget: 20 * time.Second,
		Fallback: func(struct{}) heldBy { return heldBy{Holds: []decision.Hold{{Reason: decision.ReasonNoDecision}}} },
	}
}

// TestARollbackIsNeverLooser draws bundles, which of them are late, and what users do. Each bundle
// always holds. Whatever was rolled back, each bundle that users put in holds still, or what was
// before it does, or else nothing is decided; and no bundle is rolled back that was not late.
func TestARollbackIsNeverLooser(t *testing.T) {
	made := map[string]*bundle.Bundle{}
	bundleOf := func(t *rapid.T, name string, version int, opts ...bundle.Option) *bundle.Bundle {
		key := fmt.Sprint(name, version, len(opts))
		if b := made[key]; b != nil {
			return b
		}
		// What a tenant or a canary has is told apart by its name.
		text := fmt.Sprintf("package extend.test.%s\nhold contains {\"reason\": \"%s%d\", \"message\": \"m\"}\n", name, name, version)
		b, err := bundle.FromFiles(name, map[string]string{"a.rego": text}, opts...)
		if err != nil {
			t.Fatal(err)
		}
		made[key] = b
		return b
	}
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		e, err := New(fstest.MapFS{"test/test.rego": {Data: []byte(holdsOnly)}}, WithPoints("test/go"))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		slow := lateness{map[string]bool{}, map[[2]string]bool{}}
		var all bundle.Set
		for _, name := range names {
			for version := range 3 {
				all = append(all, bundleOf(t, name, version))
			}
		}
		mine := bundleOf(t, "mine", 0, bundle.AsTenant("shop"))
		for _, id := range append(all.IDs(), mine.ID()) {
			slow.alone[id] = rapid.IntRange(0, 3).Draw(t, "late alone") == 0
		}
		for range rapid.IntRange(0, 3).Draw(t, "pairs") {
			pair := rapid.SampledFrom(all.IDs())
			slow.together[[2]string{pair.Draw(t, "one"), pair.Draw(t, "other")}] = true
		}
		wanted := map[string]*bundle.Bundle{} // what users put in, by where it stands
		past := map[string][]*bundle.Bundle{}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			next := maps.Clone(wanted)
			name := rapid.SampledFrom(names).Draw(t, "name")
			deleted := ""
			switch b := bundleOf(t, name, rapid.IntRange(0, 2).Draw(t, "version")); rapid.IntRange(0, 5).Draw(t, "action") {
			case 0:
				deleted = name
				delete(next, name)
				delete(next, "canary "+name)
			case 1:
				next["canary "+name] = bundleOf(t, name, rapid.IntRange(0, 2).Draw(t, "canary"), bundle.AsCanary("shop"))
			case 2:
				next["tenant"] = mine
			default:
				next[name] = b
			}
			set := standing(e.ActiveSnapshot().UserBundles(), wanted, next)
			if e.CheckRolledBack(set) != nil {
				continue // as it is refused
			}
			if err := e.ActivateBundles(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			if deleted != "" {
				e.ForgetBundle("", deleted)
				delete(past, deleted)
			}
			wanted = next
			for where, b := range wanted {
				past[where] = append(past[where], b)
			}
			for _, ns := range rapid.Permutation([]string{"shop", "bank"}).Draw(t, "namespaces") {
				settle(t, e, slow, ns)
			}
			for _, ns := range []string{"shop", "bank", ""} {
				notLooser(t, e, ns, wanted, past)
			}
		}
	})
}

// standing is a set in which what stands is left as it is, and what users change is changed.
func standing(now bundle.Set, wanted, next map[string]*bundle.Bundle) (out bundle.Set) {
	where := func(b *bundle.Bundle) string {
		switch {
		case b.Kind == bundle.Tenant:
			return "tenant"
		case b.Canary != nil:
			return "canary " + b.Name
		}
		return b.Name
	}
	for _, b := range now {
		if w := where(b); next[w] == wanted[w] && next[w] != nil {
			out = append(out, b)
		}
	}
	for _, w := range slices.Sorted(maps.Keys(next)) {
		if next[w] != wanted[w] {
			out = append(out, next[w])
		}
	}
	return out
}

// settle makes decisions until none is late.
func settle(t *rapid.T, e *Engine, slow lateness, namespace string) {
	for range 100 {
		s := e.ActiveSnapshot()
		again := func(set bundle.Set) trial {
			here := set.DecidingIn(namespace)
			if len(here.WithheldBundles()) == 0 && len(slow.culprits(here)) > 0 {
				return late
			}
			return inTime
		}
		if again(s.set) == inTime {
			return
		}
		guilty := findFaultyBundles(s.set, namespace, e.oldestFirst, again, false)
		if len(guilty) == 0 {
			t.Fatalf("no bundle is to blame of %v", s.set.IDs())
		}
		for _, b := range guilty {
			// What takes the place of a canary that is out of the way may be to blame too.
			if !slices.Contains(slow.culprits(append(s.set.DecidingIn(namespace), s.set.OwnedBy("")...)), b.ID()) {
				t.Fatalf("%s is to blame, and was never late", b.ID())
			}
		}
		e.strikeBundles(guilty, &decisionRequest{name: "test/go"}, false)
	}
	t.Fatalf("decisions are late for ever with %v", e.ActiveSnapshot().set.IDs())
}

// notLooser compares a decision with all that users put in.
func notLooser(t *rapid.T, e *Engine, namespace string, wanted map[string]*bundle.Bundle, past map[string][]*bundle.Bundle) {
	got, rec := Decide(t.Context(), e, heldPoint(), decision.Subject{Namespace: namespace}, struct{}{})
	if rec.Outcome != decision.Decided {
		if len(got.Holds) != 1 || got.Holds[0].Reason != decision.ReasonNoDecision || len(e.ActiveSnapshot().set.DecidingIn(namespace).WithheldBundles()) == 0 {
			t.Fatalf("%+v %s %s", got, rec.Outcome, rec.Error)
		}
		return
	}
	held := map[string]bool{}
	for _, h := range got.Holds {
		held[strings.TrimRight(h.Reason, "0123456789")] = true
		version := func(b *bundle.Bundle) bool { return strings.Contains(b.Files["a.rego"], `"`+h.Reason+`"`) }
		name := strings.TrimRight(h.Reason, "0123456789")
		if !slices.ContainsFunc(slices.Concat(past[name], past["canary "+name], past["tenant"]), version) {
			t.Fatalf("%s holds in %q, and was not put in", h.Reason, namespace)
		}
	}
	for where, b := range wanted {
		if here := b.Kind != bundle.Tenant && b.Canary == nil || namespace == "shop"; here && !held[b.Name] {
			t.Fatalf("%s holds nothing any more in %q: %+v", where, namespace, got)
		}
	}
}
