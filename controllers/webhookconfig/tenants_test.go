// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/test/rules"
)

// wish is a bundle that wants to be asked about something.
func wish(t *testing.T, guards string, opts ...bundle.Option) *bundle.Bundle {
	t.Helper()
	b, err := bundle.FromFiles("own", map[string]string{"a.rego": "package extend.protection.own\n" + guards}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func asked(t *testing.T, set ...*bundle.Bundle) *Rules {
	t.Helper()
	e := rules.Engine(t, "")
	if err := e.ActivateBundles(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	return NewRules(e, allGates())
}

func TestGuardsOfNamespaces(t *testing.T) {
	const maps = `"group": "", "resource": "configmaps", "operations": ["DELETE"]`
	many := fmt.Sprintf(`guard contains {"group": "", "resource": sprintf("kind%%d", [i]), "operations": ["DELETE"]} if some i in numbers.range(1, %d)`, mostOwn+5)
	long := `guard contains {"group": "", "resource": "configmaps", "operations": ["DELETE"], "labels": {sprintf("x%d.io/%063d", [i, i]): sprintf("%063d", [i]) | some i in numbers.range(1, 50)}}`
	in := bundle.AsTenant
	for name, tc := range map[string]struct {
		set  bundle.Set
		want []string // resource and namespaces of those besides the cluster's
		left string
	}{
		"no namespace has any":         {},
		"a tenant's, which is limited": {set: bundle.Set{wish(t, `guard contains {`+maps+`}`, in("shop"))}, want: []string{"configmaps [shop]"}},
		"one that is about others":     {set: bundle.Set{wish(t, `guard contains {`+maps+`, "namespaces": ["bank", "kube-system"]}`, in("shop"))}, want: []string{"configmaps [shop]"}},
		"two tenants'":                 {set: bundle.Set{wish(t, `guard contains {`+maps+`}`, in("shop")), wish(t, `guard contains {`+maps+`}`, in("bank"))}, want: []string{"configmaps [bank]", "configmaps [shop]"}},
		"the platform's, everywhere":   {set: bundle.Set{wish(t, `guard contains {`+maps+`}`)}, want: []string{"configmaps []"}},
		"a canary's":                   {set: bundle.Set{wish(t, `guard contains {`+maps+`}`, bundle.AsCanary("bank", "shop"))}, want: []string{"configmaps [bank]", "configmaps [shop]"}},
		"too many":                     {set: bundle.Set{wish(t, many, in("shop"))}, want: slices.Repeat([]string{"*"}, mostOwn), left: "guards of namespace shop are left out: it may have 20"},
		"labels that are too long":     {set: bundle.Set{wish(t, long, in("shop"))}, want: []string{"configmaps [shop]"}, left: "labels of guards of namespace shop are left out"},
		"one about what limits the namespace": {
			set: bundle.Set{wish(t, `guard contains {"group": g, "resource": r, "operations": ["DELETE", "UPDATE"]} if some [g, r] in [
				["rbac.authorization.k8s.io", "rolebindings"], ["rbac.authorization.k8s.io", "roles"], ["", "resourcequotas"], ["", "limitranges"],
				["", "namespaces"], ["networking.k8s.io", "networkpolicies"], ["policy.kruise.io", "policybundles"]]
				guard contains {`+maps+`}`, in("shop"))},
			want: []string{"configmaps [shop]"}, left: "a guard of namespace shop is left out: rolebindings.rbac.authorization.k8s.io are for bundles of the cluster alone",
		},
		"one that must not fail open": {
			set: bundle.Set{wish(t, `guard contains {`+maps+`, "failurePolicy": "Fail"}`, in("shop"))}, want: []string{"configmaps [shop]"},
			left: "failurePolicy Fail of guards of namespace shop is left out: only bundles of the cluster may have requests refused while no manager answers",
		},
		"the platform's that must not fail open": {set: bundle.Set{wish(t, `guard contains {`+maps+`, "failurePolicy": "Fail"}`)}, want: []string{"configmaps [] Fail"}},
		"one that fails":                         {set: bundle.Set{wish(t, `guard contains {`+maps+`} if to_number("x") > 1`, in("shop")), wish(t, `guard contains {`+maps+`}`, in("bank"))}, want: []string{"configmaps [bank]"}, left: "the policies of namespace shop could not decide what they are asked about"},
	} {
		t.Run(name, func(t *testing.T) {
			r := asked(t, tc.set...)
			answer := r.RefreshAnswer(t.Context())
			if !answer.Known || answer.Failure != "" || len(answer.Kinds) == 0 {
				t.Fatalf("got %+v", answer)
			}
			var got []string
			for _, g := range answer.Guards {
				if len(tc.want) == mostOwn {
					got = append(got, "*")
				} else {
					got = append(got, strings.TrimSpace(fmt.Sprint(g.Resource, " ", g.Namespaces, " ", g.FailurePolicy)))
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if left := strings.Join(answer.Left, "; "); !strings.Contains(left, tc.left) || (left == "") != (tc.left == "") {
				t.Errorf("left out is %q, want %q", left, tc.left)
			}
			if len(r.CurrentAnswer(t.Context()).Guards) > 1 {
				t.Error("what a kind is protected from waits for the policies of namespaces")
			}
		})
	}
}

// However many namespaces have guards, and whatever these are, the API server takes the configuration, and the guards of a
// namespace with few are all in it.
func TestTheGuardsOfManyNamespaces(t *testing.T) {
	long := strings.Repeat("x", 60)
	for name, tc := range map[string]struct {
		others int
		guard  func(namespace, i int) protection.Guard
		left   string
	}{
		"those of a few": {50, func(_, i int) protection.Guard { return guard("", fmt.Sprint("kind", i%5), protection.Delete) }, ""},
		"those of 500":   {500, func(_, i int) protection.Guard { return guard("", fmt.Sprint("kind", i), protection.Delete) }, "so more is asked about"},
		"of kinds that are made up": {500, func(n, i int) protection.Guard {
			return guard(strings.Repeat("x.", 126)+"x", fmt.Sprintf("%s-%d", long[:50], n*mostOwn+i), protection.Delete)
		}, "are left out: those of all namespaces are too long together"},
		"with many labels": {500, func(n, i int) protection.Guard {
			g := guard("", "kind", protection.Delete)
			g.Labels = map[string]string{fmt.Sprintf("%s%d", long[:50], n): fmt.Sprint(i, long)[:60]}
			return g
		}, "so more is asked about"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []ownGuards
			for n := range tc.others {
				s := said{answered: true}
				for i := range mostOwn {
					s.guards = append(s.guards, tc.guard(n, i))
				}
				ns := fmt.Sprintf("a-%s-%d", long[:40], n) // it comes first by its name
				own, _ := boundGuards(ns, s, nil)
				all = append(all, ownGuards{ns, own})
			}
			few, _ := boundGuards("shop", said{guards: []protection.Guard{guard("", "configmaps", protection.Delete)}}, nil)
			guards, left := boundTogether(append(all, ownGuards{"shop", few}))
			if text := strings.Join(left, "; "); !strings.Contains(text, tc.left) || (text == "") != (tc.left == "") {
				t.Errorf("left out is %q", text)
			}
			f := renderFacts{Config: installation(), gates: allGates(), call: service()}
			_, f.users, _ = filterGuarded(protection.GuardsOutput{Guards: guards}, f.gates, true)
			out, err := renderWebhooks(f)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(out.validating)
			if err != nil || len(text) > 1_300_000 {
				t.Errorf("it has %d bytes, %v", len(text), err)
			}
			for _, w := range out.validating {
				for _, c := range w.MatchConditions {
					if len(c.Expression) > 100_000 {
						t.Errorf("condition %s of %s has %d bytes", c.Name, w.Name, len(c.Expression))
					}
				}
			}
			asks := func(ns string, g protection.Guard) bool {
				return slices.ContainsFunc(f.users, func(o protection.Guard) bool {
					return o.Resource == g.Resource && o.Group == g.Group && slices.Contains(o.Operations, g.Operations[0]) && (len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, ns))
				})
			}
			if !asks("shop", few[0]) {
				t.Error("the guard of a namespace that has one is left out")
			}
			for _, own := range all {
				for _, g := range own.guards {
					if !asks(own.namespace, g) && !strings.Contains(tc.left, "are left out") {
						t.Fatalf("%s of namespace %s is left out", g.Resource, own.namespace)
					}
				}
			}
		})
	}
}

func TestANamespaceThatFailsKeepsItsGuards(t *testing.T) {
	r := asked(t, wish(t, `guard contains {"group": "", "resource": "configmaps", "operations": ["DELETE"]}`, bundle.AsTenant("shop")))
	was := r.RefreshAnswer(t.Context()).Guards
	worse := wish(t, `guard contains {"group": "", "resource": "secrets", "operations": ["DELETE"]} if to_number("x") > 1`, bundle.AsTenant("shop"))
	if err := r.engine.ActivateBundles(t.Context(), bundle.Set{worse}); err != nil {
		t.Fatal(err)
	}
	if now := r.RefreshAnswer(t.Context()); len(was) != 1 || len(now.Guards) != 1 || now.Guards[0].Resource != "configmaps" || len(now.Left) != 1 {
		t.Errorf("it was %v and is %+v", was, now)
	}
	if err := r.engine.ActivateBundles(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if now := r.RefreshAnswer(t.Context()); len(now.Guards) != 0 || len(now.Left) != 0 {
		t.Errorf("its bundle is gone, and there is %+v", now)
	}
}

// TestATenantIsSentWhatHappensInItsNamespace has a real API server read the
// conditions.
func TestATenantIsSentWhatHappensInItsNamespace(t *testing.T) {
	_, api := apiServer.Serve(t)
	s := listen(t)
	chart(t, api, admissionv1.WebhookClientConfig{URL: ptr.To(s.URL + "/validate-apps-kruise-io-cloneset"), CABundle: s.ca()})
	for _, ns := range []string{"shop", "bank"} {
		create(t, api, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
	e, err := engine.New(fstest.MapFS{"protection/guards.rego": {Data: []byte(`package protection
guards := {"kinds": [], "guards": [g | some name; some g in data.extend.protection[name].guard]}`)}}, engine.WithPatience(20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	own := wish(t, `guard contains {"group": "", "resource": "configmaps", "operations": ["DELETE"], "namespaces": ["bank"]}`, bundle.AsTenant("shop"))
	if err := e.ActivateBundles(t.Context(), bundle.Set{own}); err != nil {
		t.Fatal(err)
	}
	w, _ := newWriter(api, NewRules(e, protection.Gates{Deletion: true}))
	if err := w.SyncConfigurations(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	deleted := func(ns string) []string {
		n++
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprint("c-", n)}}
		create(t, api, o)
		s.since()
		if err := api.Delete(t.Context(), o, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		return s.since()
	}
	eventually(t, "the API server asks about shop", func() bool { return len(deleted("shop")) == 1 })
	if calls := deleted("bank"); len(calls) != 0 {
		t.Errorf("it asks about bank: %v", calls)
	}
	// Another manager begins to lead. It cannot load the bundle of shop, and does not know what it said.
	lacking, err := e.CompileMissing(t.Context(), nil, []engine.Missing{{Bundle: "shop/own", Namespaces: []string{"shop"}, Reason: "its archive is gone"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Swap(lacking); err != nil {
		t.Fatal(err)
	}
	next, _ := newWriter(api, NewRules(e, protection.Gates{Deletion: true}))
	for range 2 { // the second one finds what the first one wrote
		if err := next.SyncConfigurations(t.Context()); err != nil {
			t.Fatal(err)
		}
		next.Rules = NewRules(e, protection.Gates{Deletion: true})
	}
	written := &admissionv1.ValidatingWebhookConfiguration{}
	get(t, api, ConfigurationName, written)
	if len(written.Webhooks) != 1 || written.Webhooks[0].Name != "vguard.kb.io" {
		t.Fatalf("a leader without the bundle writes %+v", written.Webhooks)
	}
	time.Sleep(time.Second) // for the API server to take it up
	if calls := deleted("shop"); len(calls) != 1 {
		t.Errorf("a leader without the bundle has the API server ask about shop no more: %v", calls)
	}
	none, err := e.CompileMissing(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Swap(none); err != nil {
		t.Fatal(err)
	}
	w.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if err := w.SyncConfigurations(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API server no longer asks", func() bool { return len(deleted("shop")) == 0 })
}
