// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
)

// While the policies do not say what is protected, everything stays as it is, and
// one event reports it.
func TestUndecided(t *testing.T) {
	_, api := apiServer.Serve(t)
	t.Run("without the chart's objects nothing is written", func(t *testing.T) {
		w, _ := newWriter(api, policies(t, allGates(), nothing))
		if err := w.CoverNamespace(t.Context(), "shop"); err == nil || !strings.Contains(err.Error(), "MutatingWebhookConfiguration kruise-protection-webhook-configuration does not exist") {
			t.Errorf("got %v", err)
		}
	})
	chart(t, api, admissionv1.WebhookClientConfig{URL: ptr.To("https://localhost:1/x"), CABundle: listen(t).ca()})
	const undecided = `{"kinds": [], "guards": []} if input.gates.deletion == "no"`
	w, events := newWriter(api, policies(t, allGates(), undecided))
	for range 3 {
		if err := w.CoverNamespace(t.Context(), "shop"); err == nil || !strings.Contains(err.Error(), "no policy has said yet what is protected: Undefined") {
			t.Fatalf("got %v", err)
		}
	}
	if len(events.Events) != 1 {
		t.Errorf("%d events", len(events.Events))
	}
	w.Rules = policies(t, allGates(), `{"kinds": [{"group": "", "resource": "services"}], "guards": [{"rule": "r", "group": "", "resource": "nodes", "operations": ["DELETE"]}]}`)
	if err := w.SyncConfigurations(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(events.Events); n != 2 {
		t.Errorf("%d events", n)
	}
	was := versions(t, api)
	known := w.Rules
	w.Rules = policies(t, allGates(), undecided)
	w.Rules.last, w.Rules.answered = known.last, true
	if err := w.SyncConfigurations(t.Context()); err != nil || versions(t, api) != was {
		t.Errorf("versions were %s and are %s: %v", was, versions(t, api), err)
	}
	if k, err := w.Rules.Kind(t.Context(), "", "services"); k == nil || err != nil {
		t.Errorf("what was known of kinds is forgotten: %v", err)
	}
	if _, err := policies(t, allGates(), undecided).Kind(t.Context(), "", "services"); err == nil || !strings.Contains(err.Error(), "asking which kinds are protected: Undefined") {
		t.Errorf("got %v", err)
	}
}
