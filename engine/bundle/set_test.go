// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/bundle"
)

// holding is a bundle with one package extend.rollout.<pkg>.
func holding(t testing.TB, name, pkg string, opts ...bundle.Option) *bundle.Bundle {
	t.Helper()
	b, err := bundle.FromFiles(name, map[string]string{"a.rego": "package extend.rollout." + pkg + "\nhold contains {} if true\n# " + name}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestACanaryHoldsInItsNamespacesInPlaceOfTheOtherOfItsName(t *testing.T) {
	stable, other := holding(t, "freeze", "a"), holding(t, "zones", "b")
	canary := holding(t, "freeze", "c", bundle.AsCanary("shop", "bank", "shop", ""))
	nowhere := holding(t, "zones", "d", bundle.AsCanary())
	own := holding(t, "own", "e", bundle.AsTenant("shop"))
	set := bundle.Set{stable, canary, own, other, nowhere}
	if want := []string{"bank", "shop"}; !slices.Equal(canary.Canary, want) || !slices.Equal(set.NamespacesWithBundles(), want) {
		t.Errorf("it holds in %v, and others decide in %v; want %v", canary.Canary, set.NamespacesWithBundles(), want)
	}
	for what, tc := range map[string]struct{ got, want bundle.Set }{
		"in shop":                 {set.DecidingIn("shop"), bundle.Set{canary, own, other}},
		"in bank":                 {set.DecidingIn("bank"), bundle.Set{canary, other}},
		"elsewhere":               {set.DecidingIn("third"), bundle.Set{stable, other}},
		"in the cluster":          {set.DecidingIn(""), bundle.Set{stable, other}},
		"of everywhere":           {set.OwnedBy(""), bundle.Set{stable, other}},
		"of shop's own":           {set.OwnedBy("shop"), bundle.Set{own}},
		"deciding":                {bundle.Set{stable, own.WithheldCopy()}.WithoutWithheld(), bundle.Set{stable}},
		"canaries of bank":        {set.CanariesIn("bank"), bundle.Set{canary}},
		"canaries of the cluster": {set.CanariesIn(""), nil},
	} {
		if !slices.Equal(tc.got, tc.want) {
			t.Errorf("%s are %v, want %v", what, tc.got.IDs(), tc.want.IDs())
		}
	}
}

func TestARevisionTellsWhereCanariesHold(t *testing.T) {
	of := func(namespaces ...string) bundle.Set {
		return bundle.Set{holding(t, "freeze", "a", bundle.AsCanary(namespaces...))}
	}
	everywhere := bundle.Set{holding(t, "freeze", "a")}
	sets := []bundle.Set{everywhere, of(), of("shop"), of("bank"), of("shop", "bank")}
	seen := map[string]bool{}
	for _, s := range sets {
		seen[s.Revision()] = true
		if s.ContentHash() != everywhere.ContentHash() {
			t.Errorf("the content of a canary in %v is another", s[0].Canary)
		}
	}
	if len(seen) != len(sets) {
		t.Errorf("%d sets have %d revisions", len(sets), len(seen))
	}
	withheld := bundle.Set{everywhere[0].WithheldCopy()}
	if withheld.ContentHash() == everywhere.ContentHash() || withheld.Revision() == everywhere.Revision() || len(withheld.WithheldBundles()) != 1 || everywhere[0].Withheld {
		t.Error("a bundle that is withheld is as one that decides")
	}
	if of("shop", "bank").Revision() != of("bank", "shop").Revision() {
		t.Error("the order of namespaces changes the revision")
	}
}

func TestConflicts(t *testing.T) {
	in := bundle.AsCanary
	beside := func(name, pkg, data string, opts ...bundle.Option) *bundle.Bundle {
		files := map[string]string{"a.rego": "package extend.rollout." + pkg + "\nhold contains {} if true", "extend/rollout/" + data + "/data.json": `{"` + name + `": 1}`}
		b, err := bundle.FromFiles(name, files, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, tc := range map[string]struct {
		set  bundle.Set
		want []string // pairs, as they are said
	}{
		"packages of their own":                             {set: bundle.Set{holding(t, "x", "a"), holding(t, "y", "b")}},
		"one package of two":                                {set: bundle.Set{holding(t, "x", "a"), holding(t, "y", "a")}, want: []string{"y x"}},
		"a tenant and the platform":                         {set: bundle.Set{holding(t, "own", "a", bundle.AsTenant("shop")), holding(t, "y", "a")}, want: []string{"y own"}},
		"two tenants":                                       {set: bundle.Set{holding(t, "own", "a", bundle.AsTenant("shop")), holding(t, "own", "a", bundle.AsTenant("bank"))}},
		"two bundles of a tenant":                           {set: bundle.Set{holding(t, "x", "a", bundle.AsTenant("shop")), holding(t, "y", "a", bundle.AsTenant("shop"))}, want: []string{"y x"}},
		"a canary and what it replaces":                     {set: bundle.Set{holding(t, "x", "a"), holding(t, "x", "a", in("shop"))}},
		"a canary before what it replaces":                  {set: bundle.Set{holding(t, "x", "a", in("shop")), holding(t, "x", "a")}},
		"a canary and another bundle":                       {set: bundle.Set{holding(t, "x", "a"), holding(t, "y", "a", in("shop"))}, want: []string{"y x"}},
		"a canary that takes a package from another canary": {set: bundle.Set{holding(t, "x", "a"), holding(t, "x", "b", in("shop")), holding(t, "y", "a", in("shop"))}},
		"the same where only one of them holds":             {set: bundle.Set{holding(t, "x", "a"), holding(t, "x", "b", in("shop")), holding(t, "y", "a", in("shop", "bank"))}, want: []string{"y x"}},
		"two canaries in one namespace":                     {set: bundle.Set{holding(t, "x", "a", in("shop")), holding(t, "y", "a", in("bank", "shop"))}, want: []string{"y x"}},
		"two canaries that never meet":                      {set: bundle.Set{holding(t, "x", "a", in("shop")), holding(t, "y", "a", in("bank"))}},
		"a canary and a tenant there":                       {set: bundle.Set{holding(t, "x", "a", in("shop")), holding(t, "own", "a", bundle.AsTenant("shop"))}, want: []string{"own x"}},
		"a canary and a tenant elsewhere":                   {set: bundle.Set{holding(t, "x", "a", in("shop")), holding(t, "own", "a", bundle.AsTenant("bank"))}},
		"a tenant where a canary gave the package away":     {set: bundle.Set{holding(t, "x", "a"), holding(t, "x", "b", in("shop")), holding(t, "own", "a", bundle.AsTenant("shop"))}},
		"the platform's data beside a package":              {set: bundle.Set{holding(t, "x", "a"), beside("y", "b", "a")}},
		"the platform's data beside a tenant's package":     {set: bundle.Set{beside("x", "b", "a"), holding(t, "own", "a", bundle.AsTenant("shop"))}, want: []string{"own x"}},
		"a canary that holds nowhere":                       {set: bundle.Set{holding(t, "x", "a"), holding(t, "y", "a", in())}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			if err := tc.set.CheckConflicts(); err != nil {
				for _, line := range strings.Split(strings.TrimPrefix(err.Error(), "putting bundles together: "), "\n") {
					var by, of string
					if _, err := fmt.Sscanf(line, "a.rego:1:1: package extend.rollout.a of bundle %s belongs to bundle %s already", &by, &of); err != nil {
						t.Fatal(line, err)
					}
					got = append(got, by+" "+of)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func BenchmarkConflictsOfAThousandTenants(b *testing.B) {
	set := bundle.Set{holding(b, "x", "a"), holding(b, "x", "b", bundle.AsCanary("ns1", "ns2"))}
	for i := range 1000 {
		set = append(set, holding(b, "own", "own", bundle.AsTenant(fmt.Sprint("ns", i))))
	}
	for b.Loop() {
		if err := set.CheckConflicts(); err != nil {
			b.Fatal(err)
		}
	}
}
