// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhookConfigurations are those of the chart and of the manager.
func webhookConfigurations(t *testing.T, r release) (out []client.Object) {
	t.Helper()
	for _, o := range all[*admissionv1.MutatingWebhookConfiguration](r) {
		out = append(out, o)
	}
	for _, o := range all[*admissionv1.ValidatingWebhookConfiguration](r) {
		out = append(out, o)
	}
	if len(out) != 4 {
		t.Fatalf("there are %d webhook configurations", len(out))
	}
	return out
}

// AKS adds requirements to each webhook configuration that does not say that it is to be left alone.
func TestWebhookConfigurationsAreLeftAloneByAKS(t *testing.T) {
	const key = "admissions.enforcer/disabled"
	for _, o := range webhookConfigurations(t, render(t, "--set", `externalCerts.annotations.a=b`)) {
		if o.GetAnnotations()[key] != "true" {
			t.Errorf("%T %s has annotations %v", o, o.GetName(), o.GetAnnotations())
		}
	}
	if got := mutating(t, render(t, "--set-json", `externalCerts.annotations={"`+key+`":"false","a":"b"}`)).Annotations; got[key] != "false" || got["a"] != "b" {
		t.Errorf("annotations of users are lost: %v", got)
	}
}
