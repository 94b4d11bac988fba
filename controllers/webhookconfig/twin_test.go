// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// The twin lets go while a replica of the manager is ready, and no longer.
func TestTwin(t *testing.T) {
	_, api := apiServer.Serve(t)
	for name, labels := range map[string]map[string]string{"kruise-system": nil, "switched": {SwitchKey: SwitchOff}} {
		create(t, api, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	// The webhook itself cannot be called here, so it is not to stand in the way.
	ca := listen(t).ca()
	chart(t, api, admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "kruise-system", Name: "kruise-webhook-service", Path: ptr.To("/x")}, CABundle: ca})
	w, _ := newWriter(api, policies(t, allGates(), `{"kinds": [{"group": "", "resource": "services"}, {"group": "apps", "resource": "deployments"}], "guards": []}`))
	sync := func() {
		t.Helper()
		if err := w.SyncConfigurations(t.Context()); err != nil {
			t.Fatal(err)
		}
		v := &admissionv1.ValidatingWebhookConfiguration{}
		get(t, api, ConfigurationName, v)
		v.Webhooks = nil
		if err := api.Update(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	sync()
	n := 0
	try := func(o client.Object, value string) error {
		t.Helper()
		n++
		o.SetName(fmt.Sprintf("x-%d", n))
		if value != "" {
			o.SetLabels(map[string]string{"policy.kruise.io/delete-protection": value})
		}
		create(t, api, o)
		return api.Delete(t.Context(), o)
	}
	serviceIn := func(ns string) client.Object {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "x.example"}}
	}
	denied := func(err error, text string) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), text)
	}
	manager := deployment("kruise-system", DeploymentName)
	create(t, api, manager)
	eventually(t, "it refuses without a ready replica, and says so", func() bool { return denied(try(serviceIn("default"), "Always"), absent) })
	if err := api.Delete(t.Context(), manager); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it leaves it to the webhook without a Deployment", func() bool { return try(serviceIn("default"), "Always") == nil })
	manager = deployment("kruise-system", DeploymentName)
	create(t, api, manager)
	eventually(t, "it refuses again", func() bool { return denied(try(serviceIn("default"), "Always"), absent) })
	for name, tc := range map[string]struct {
		of    client.Object
		value string
		want  bool
	}{
		"another kind that is protected":  {deployment("default", ""), "Always", true},
		"one without the label":           {serviceIn("default"), "", false},
		"one whose label says Cascading":  {serviceIn("default"), "Cascading", false},
		"a kind that is not protected":    {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}, "Always", false},
		"one of kube-system":              {serviceIn("kube-system"), "Always", false},
		"one of a namespace switched off": {serviceIn("switched"), "Always", false},
		"one of the manager's own":        {serviceIn("kruise-system"), "Always", false},
	} {
		if err := try(tc.of, tc.value); denied(err, absent) != tc.want || !tc.want && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	manager.Status.Replicas, manager.Status.ReadyReplicas = 1, 1
	if err := api.Status().Update(t.Context(), manager); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it lets go with a ready replica", func() bool { return try(serviceIn("default"), "Always") == nil })
	manager.Status.ReadyReplicas = 0
	if err := api.Status().Update(t.Context(), manager); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it refuses again without one", func() bool { return denied(try(serviceIn("default"), "Always"), absent) })

	policy := &admissionv1.ValidatingAdmissionPolicy{}
	get(t, api, PolicyName, policy)
	if refs := policy.OwnerReferences; len(refs) != 1 || refs[0].Name != ConfigurationName || refs[0].Kind != "ValidatingWebhookConfiguration" {
		t.Errorf("it belongs to %v", refs)
	}
	if warnings := policy.Status.TypeChecking; warnings != nil && len(warnings.ExpressionWarnings) > 0 {
		t.Errorf("the API server warns: %v", warnings.ExpressionWarnings)
	}
	w.Rules = policies(t, allGates(), `{"kinds": [{"group": "", "resource": "configmaps"}], "guards": []}`)
	sync()
	eventually(t, "the kinds are others", func() bool {
		return denied(try(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}, "Always"), absent) && try(serviceIn("default"), "Always") == nil
	})
	w.Rules = policies(t, protection.Gates{}, `{"kinds": [{"group": "", "resource": "configmaps"}], "guards": []}`)
	sync()
	if err := api.Get(t.Context(), client.ObjectKey{Name: PolicyName}, policy); !apierrors.IsNotFound(err) {
		t.Errorf("the policy outlives its gate: %v", err)
	}
	if err := api.Get(t.Context(), client.ObjectKey{Name: PolicyName}, &admissionv1.ValidatingAdmissionPolicyBinding{}); !apierrors.IsNotFound(err) {
		t.Errorf("the binding outlives its gate: %v", err)
	}
}

// What another client adds to the policy or to its binding is taken out. Either could have it look at nothing.
func TestWhatAnotherClientAddsToTheTwinIsTakenOut(t *testing.T) {
	_, api := apiServer.Serve(t)
	chart(t, api, admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "kruise-system", Name: "kruise-webhook-service", Path: ptr.To("/x")}, CABundle: listen(t).ca()})
	w, _ := newWriter(api, policies(t, allGates(), `{"kinds": [{"group": "", "resource": "services"}], "guards": []}`))
	if err := w.SyncConfigurations(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantPolicy, wantBinding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	get(t, api, PolicyName, wantPolicy)
	get(t, api, PolicyName, wantBinding)
	policy, binding := wantPolicy.DeepCopy(), wantBinding.DeepCopy()
	policy.Spec.MatchConditions = append(policy.Spec.MatchConditions, admissionv1.MatchCondition{Name: "never", Expression: "false"})
	binding.Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "yes"}}}
	for _, o := range []client.Object{policy, binding} {
		if err := api.Update(t.Context(), o, client.FieldOwner("mallory")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.SyncConfigurations(t.Context()); err != nil {
		t.Fatal(err)
	}
	get(t, api, PolicyName, policy)
	get(t, api, PolicyName, binding)
	if diff := cmp.Diff(wantPolicy.Spec, policy.Spec) + cmp.Diff(wantBinding.Spec, binding.Spec); diff != "" {
		t.Error(diff)
	}
}

// A client that changes the policy whenever it is put back is not written against without end, and an event names it.
func TestAClientThatInsistsOnAnotherTwinIsPutBackWithinMinutes(t *testing.T) {
	_, api := apiServer.Serve(t)
	chart(t, api, admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "kruise-system", Name: "kruise-webhook-service", Path: ptr.To("/x")}, CABundle: listen(t).ca()})
	w, _ := newWriter(api, policies(t, allGates(), `{"kinds": [{"group": "", "resource": "services"}], "guards": []}`))
	c := &contested{Writer: w, api: api, counts: &countingClient{Client: api}, now: time.Now(), events: record.NewFakeRecorder(100)}
	w.Client, w.Events, w.Now = c.counts, c.events, func() time.Time { return c.now }
	c.sync(t)
	insist := func() {
		t.Helper()
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		get(t, api, PolicyName, policy)
		if *policy.Spec.FailurePolicy == admissionv1.Ignore {
			return
		}
		policy.Spec.FailurePolicy = ptr.To(admissionv1.Ignore)
		if err := api.Update(t.Context(), policy, client.FieldOwner("mallory")); err != nil {
			t.Fatal(err)
		}
	}
	longest := c.insistFor(t, time.Hour, insist)
	if c.counts.writes < 10 || c.counts.writes > 25 || longest > changePace.longest+time.Second {
		t.Errorf("in an hour it is put back %d times, %s apart at most", c.counts.writes, longest)
	}
	if got := c.told(); !strings.HasPrefix(got, "Warning WebhookChanged client mallory has changed its spec or owner. It is put back") {
		t.Errorf("the event is %q", got)
	}
	c.now = c.now.Add(changePace.longest)
	c.sync(t)
	policy := &admissionv1.ValidatingAdmissionPolicy{}
	get(t, api, PolicyName, policy)
	if *policy.Spec.FailurePolicy != admissionv1.Fail {
		t.Error("it is not put back in the end")
	}
	w.Rules = policies(t, allGates(), `{"kinds": [{"group": "", "resource": "configmaps"}], "guards": []}`)
	before := c.counts.writes
	insist()
	if c.sync(t); c.counts.writes == before {
		t.Error("another policy waits for the client")
	}
}

// noPolicies refuses writes of policies of the API server's own, as another policy may.
type noPolicies struct{ client.Client }

func (c noPolicies) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if u, ok := o.(interface{ GetKind() string }); ok && u.GetKind() == "ValidatingAdmissionPolicy" {
		return errors.New("policies are refused")
	}
	return c.Client.Apply(ctx, o, opts...)
}

// A policy that cannot be written keeps no namespace without its webhooks, and the error says why it is not there.
func TestATwinThatCannotBeWrittenLeavesNothingElseUnprotected(t *testing.T) {
	_, api := apiServer.Serve(t)
	chart(t, api, admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "kruise-system", Name: "kruise-webhook-service", Path: ptr.To("/x")}, CABundle: listen(t).ca()})
	w, _ := newWriter(api, policies(t, allGates(), `{"kinds": [{"group": "", "resource": "services"}], "guards": []}`))
	w.Client = noPolicies{api}
	if err := w.SyncConfigurations(t.Context()); err == nil || !strings.Contains(err.Error(), "policies are refused") {
		t.Errorf("got %v", err)
	}
	v := &admissionv1.ValidatingWebhookConfiguration{}
	if get(t, api, ConfigurationName, v); len(v.Webhooks) == 0 {
		t.Error("there are no webhooks")
	}
}
