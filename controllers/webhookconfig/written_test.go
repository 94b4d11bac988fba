// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// A leader whose policies of a namespace do not answer has everything sent that the one before had sent for the guards of the
// namespace, whatever else there is.
func TestALeaderThatDoesNotKnowGuardsKeepsWhatIsWritten(t *testing.T) {
	namespaces := []string{"shop", "bank", "shop-2"}
	rapid.Check(t, func(rt *rapid.T) {
		var users []protection.Guard
		for range rapid.IntRange(0, 6).Draw(rt, "guards") {
			g := protection.Guard{
				Group: rapid.SampledFrom([]string{"", "apps"}).Draw(rt, "group"), Resource: rapid.SampledFrom([]string{"pods", "secrets", "secrets-2"}).Draw(rt, "resource"),
				Operations: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{protection.Delete, protection.Update, protection.Evict, protection.Resize}), 1, 4, rapid.ID).Draw(rt, "operations"),
				Namespaces: rapid.SliceOfNDistinct(rapid.SampledFrom(namespaces), 0, 3, rapid.ID).Draw(rt, "namespaces"),
			}
			if rapid.Bool().Draw(rt, "labelled") {
				g.Labels = map[string]string{"app": "web"}
			}
			if len(g.Namespaces) != 1 && rapid.Bool().Draw(rt, "fails closed") {
				g = closed(g)
			}
			users = append(users, g)
		}
		config := installation()
		config.Pods = true
		f := renderFacts{Config: config, gates: allGates(), call: service()}
		var err error
		_, f.users, _ = filterGuarded(protection.GuardsOutput{Guards: users}, f.gates, true)
		before, err := renderWebhooks(f)
		if err != nil {
			rt.Fatal(err)
		}
		written := writtenFor([]string{"shop"}, before.validating)
		for _, g := range f.users {
			if !slices.Equal(g.Namespaces, []string{"shop"}) {
				continue
			}
			for _, op := range g.Operations {
				if !slices.ContainsFunc(written, func(o protection.Guard) bool {
					return o.Group == g.Group && o.Resource == g.Resource && slices.Contains(o.Operations, op) && slices.Equal(o.Namespaces, g.Namespaces)
				}) {
					rt.Fatalf("%s of %s in shop is lost: %+v", op, g.Resource, written)
				}
			}
		}
		for _, o := range written { // and nothing that no guard of the namespace is about
			if !slices.ContainsFunc(f.users, func(g protection.Guard) bool {
				return o.Group == g.Group && o.Resource == g.Resource && (len(g.Namespaces) == 0 || slices.Contains(g.Namespaces, "shop"))
			}) && o.Resource != "pods" {
				rt.Fatalf("%+v is made up", o)
			}
		}
	})
}

func TestWhichNamespacesAreNotKnown(t *testing.T) {
	own := wish(t, `guard contains {"group": "", "resource": "configmaps", "operations": ["DELETE"]}`, bundle.AsTenant("bank"))
	r := asked(t)
	s, err := r.engine.CompileMissing(t.Context(), bundle.Set{own}, []engine.Missing{{Bundle: "shop/own", Namespaces: []string{"shop"}, Reason: "its archive is gone"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.engine.Swap(s); err != nil {
		t.Fatal(err)
	}
	if answer := r.RefreshAnswer(t.Context()); fmt.Sprint(answer.Unknown) != "[shop]" || len(answer.Guards) != 1 {
		t.Errorf("got %+v", answer)
	}
}

// What is read back for very many namespaces, each of which the guards of all are about, fits into one object, and loses nothing.
func TestGuardsThatAreReadBackAreBounded(t *testing.T) {
	var namespaces []string
	for i := range 600 {
		namespaces = append(namespaces, fmt.Sprint("namespace-with-a-long-name-", i))
	}
	var users []protection.Guard
	for i := range 20 {
		users = append(users, protection.Guard{Group: "shop.example", Resource: fmt.Sprint("things", i), Operations: []string{protection.Delete, protection.Update}})
	}
	f := renderFacts{Config: installation(), gates: allGates(), call: service(), users: users}
	before, err := renderWebhooks(f)
	if err != nil {
		t.Fatal(err)
	}
	written, left := boundWritten(writtenFor(namespaces, before.validating), nil)
	size := 0
	for _, g := range written {
		size += bytesOf(g)
	}
	if size > longestShared || len(left) > 0 {
		t.Errorf("%d guards have %d bytes, want at most %d; left out are %v", len(written), size, longestShared, left)
	}
	for _, g := range users {
		if !slices.ContainsFunc(written, func(o protection.Guard) bool {
			return o.Group == g.Group && o.Resource == g.Resource && len(o.Operations) == 2 && (len(o.Namespaces) == 0 || len(o.Namespaces) == len(namespaces))
		}) {
			t.Errorf("%s is lost: %+v", g.Resource, written)
		}
	}
	if few, _ := boundWritten(writtenFor(namespaces[:2], before.validating), nil); len(few) != 2*len(users) {
		t.Errorf("of two namespaces there are %d guards", len(few))
	}
}

// manyResources are namespaces with guards of resources of their own, as many as fit into one object, and the webhooks that are written
// for them.
func manyResources(t *testing.T) (namespaces []string, users []protection.Guard, webhooks []admissionv1.ValidatingWebhook) {
	t.Helper()
	var all []ownGuards
	for i := range 600 {
		ns := fmt.Sprint("team-", i)
		own := ownGuards{namespace: ns}
		for _, resource := range []string{"things", "parts"} {
			own.guards = append(own.guards, protection.Guard{Group: "shop.example", Resource: fmt.Sprint(resource, i), Operations: []string{protection.Delete}, Namespaces: []string{ns}})
		}
		namespaces, users, all = append(namespaces, ns), append(users, own.guards...), append(all, own)
	}
	if together, left := boundTogether(all); len(together) != len(users) || len(left) > 0 {
		t.Fatalf("%d guards of %d are written: %v", len(together), len(users), left)
	}
	rendered, err := renderWebhooks(renderFacts{Config: installation(), gates: allGates(), call: service(), users: users})
	if err != nil {
		t.Fatal(err)
	}
	return namespaces, users, rendered.validating
}

// A condition is as long as an object may be, and is read once, not for each rule and namespace: all that the leader writes waits.
func TestConditionsAreReadBackOnce(t *testing.T) {
	namespaces, users, webhooks := manyResources(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	written := writtenFor(namespaces, webhooks)
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 16 || len(written) != len(users) {
		t.Errorf("reading back %d guards of %d takes %d MiB", len(written), len(users), took)
	}
}

// The guards of very many namespaces, each about resources of its own, fit into one object as they were written, so that a leader whose
// policies do not answer yet loses none of them. Those of namespaces that have answered have the room first.
func TestGuardsOfManyResourcesAreAllReadBack(t *testing.T) {
	namespaces, users, webhooks := manyResources(t)
	var others []protection.Guard
	for i := range 1500 {
		others = append(others, protection.Guard{Group: "bank.example", Resource: fmt.Sprint("things", i), Operations: []string{protection.Delete}, Namespaces: []string{"bank"}})
	}
	for name, tc := range map[string]struct {
		others []protection.Guard
		want   int
		most   int
	}{
		"alone":         {nil, len(users), longestOwned + longestShared},
		"beside others": {others, 513, longestShared},
	} {
		written, left := boundWritten(writtenFor(namespaces, webhooks), tc.others)
		size := 0
		for _, g := range written {
			size += bytesOf(g)
		}
		if size > tc.most || len(written) != tc.want || (len(left) > 0) != (tc.want < len(users)) {
			t.Errorf("%s %d guards of %d with %d bytes are read back, want %d with at most %d: %v", name, len(written), len(users), size, tc.want, tc.most, left)
		}
	}
}

// Another client that takes out what an earlier leader wrote for such a namespace does not have it forgotten.
func TestGuardsThatAreReadBackOutliveAnotherClient(t *testing.T) {
	_, api := apiServer.Serve(t)
	chart(t, api, admissionv1.WebhookClientConfig{URL: ptr.To("https://localhost:9443/validate-apps-kruise-io-cloneset"), CABundle: listen(t).ca()})
	before, _ := newWriter(api, asked(t, wish(t, `guard contains {"group": "", "resource": "configmaps", "operations": ["DELETE"]}`, bundle.AsTenant("shop"))))
	if err := before.SyncConfigurations(t.Context()); err != nil {
		t.Fatal(err)
	}
	rules := asked(t)
	s, err := rules.engine.CompileMissing(t.Context(), nil, []engine.Missing{{Bundle: "shop/own", Namespaces: []string{"shop"}, Reason: "its archive is gone"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := rules.engine.Swap(s); err != nil {
		t.Fatal(err)
	}
	w, _ := newWriter(api, rules)
	for _, step := range []string{"a new leader", "another client", "another client once more"} {
		if err := w.SyncConfigurations(t.Context()); err != nil {
			t.Fatal(err)
		}
		v := &admissionv1.ValidatingWebhookConfiguration{}
		get(t, api, ConfigurationName, v)
		isGuard := func(hook admissionv1.ValidatingWebhook) bool { return strings.HasPrefix(hook.Name, "vguard") }
		if !slices.ContainsFunc(v.Webhooks, isGuard) {
			t.Fatalf("%s: the guard is gone", step)
		}
		v.Webhooks = slices.DeleteFunc(v.Webhooks, isGuard)
		if err := api.Update(t.Context(), v, client.FieldOwner("mallory")); err != nil {
			t.Fatal(err)
		}
		w.validating = configurationContest{} // the wait is over
	}
}
