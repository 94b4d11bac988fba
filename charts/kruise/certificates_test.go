// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// addCertManager has the kinds of cert-manager decoded, whose types are of a module that is for nothing else.
func addCertManager(scheme *runtime.Scheme) error {
	for _, kind := range []string{"Issuer", "Certificate"} {
		scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: kind}, &unstructured.Unstructured{})
	}
	return nil
}

// certificate is the spec of a Certificate of a release.
func certificate(t *testing.T, r release, name string) map[string]any {
	t.Helper()
	for _, object := range all[*unstructured.Unstructured](r) {
		if object.GetKind() == "Certificate" && object.GetName() == name {
			spec, _ := object.Object["spec"].(map[string]any)
			return spec
		}
	}
	t.Fatalf("no Certificate %s", name)
	return nil
}

// kindsOf counts the objects of the API of cert-manager.
func kindsOf(r release) map[string]int {
	counts := map[string]int{}
	for _, object := range all[*unstructured.Unstructured](r) {
		if strings.HasPrefix(object.GetAPIVersion(), "cert-manager.io/") {
			counts[object.GetKind()]++
		}
	}
	return counts
}

// The chart does what its page says to do by hand: the gate, the annotations, and a certificate for each name that the manager is called by.
func TestCertificatesByCertManager(t *testing.T) {
	const annotation, secret = "cert-manager.io/inject-ca-from", "platform/kruise-webhook-certs"
	enabled := []string{"--api-versions", "cert-manager.io/v1", "--set", "externalCerts.certManager.enabled=true,installation.namespace=platform"}
	for _, tc := range []struct {
		name  string
		args  []string
		gates string
		names []any
		ips   []any
		kinds map[string]int
		by    map[string]any
	}{
		{
			name: "by a CA that the chart makes", gates: "EnableExternalCerts=true", names: []any{"kruise-webhook-service.platform.svc", "localhost"},
			kinds: map[string]int{"Issuer": 2, "Certificate": 2}, by: map[string]any{"group": "cert-manager.io", "kind": "Issuer", "name": "kruise-ca"},
		},
		{
			name: "by an issuer that is there", args: []string{"--set", "externalCerts.certManager.issuerRef.name=company-ca,externalCerts.certManager.issuerRef.kind=ClusterIssuer", "--set", "featureGates=AllAlpha=true"},
			gates: "AllAlpha=true,EnableExternalCerts=true", names: []any{"kruise-webhook-service.platform.svc", "localhost"},
			kinds: map[string]int{"Certificate": 1}, by: map[string]any{"group": "cert-manager.io", "kind": "ClusterIssuer", "name": "company-ca"},
		},
		{
			name: "for a manager that is called by its name", args: []string{"--set", "webhookConfiguration.url=https://kruise.example.com:9443", "--set", "featureGates=EnableExternalCerts=true"},
			gates: "EnableExternalCerts=true", names: []any{"kruise.example.com", "kruise-webhook-service.platform.svc", "localhost"},
			kinds: map[string]int{"Issuer": 2, "Certificate": 2}, by: map[string]any{"group": "cert-manager.io", "kind": "Issuer", "name": "kruise-ca"},
		},
		{
			name: "for a manager that is called by its address", args: []string{"--set-json", `webhookConfiguration={"url":"https://[fd00::7]:9443"}`},
			gates: "EnableExternalCerts=true", names: []any{"kruise-webhook-service.platform.svc", "localhost"}, ips: []any{"fd00::7"},
			kinds: map[string]int{"Issuer": 2, "Certificate": 2}, by: map[string]any{"group": "cert-manager.io", "kind": "Issuer", "name": "kruise-ca"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := render(t, slices.Concat(enabled, tc.args)...)
			wantArg(t, r, "--feature-gates="+tc.gates)
			for of, annotations := range map[string]map[string]string{
				"mutating": mutating(t, r).Annotations, "validating": validating(t, r).Annotations, "CRD": crd(t, r, cloneSets).Annotations,
				"APIService": get[*unstructured.Unstructured](t, r, "v1alpha1.decisions.kruise.io").GetAnnotations(),
			} {
				if annotations[annotation] != secret {
					t.Errorf("%s has %v", of, annotations)
				}
			}
			spec := certificate(t, r, "kruise-webhook-certs")
			ips, _ := spec["ipAddresses"].([]any)
			if !cmp.Equal(spec["dnsNames"], any(tc.names)) || !cmp.Equal(ips, tc.ips) || !cmp.Equal(spec["issuerRef"], any(tc.by)) || spec["secretName"] != "kruise-webhook-certs" {
				t.Errorf("the certificate is %v", spec)
			}
			if got := kindsOf(r); !cmp.Equal(got, tc.kinds) {
				t.Errorf("there are %v", got)
			}
			if has[*corev1.Secret](r, "kruise-webhook-certs") {
				t.Error("the manager could make certificates still")
			}
			for _, rule := range slices.Concat(get[*rbacv1.Role](t, r, "kruise-webhook-role").Rules, get[*rbacv1.ClusterRole](t, r, "kruise-certs-role").Rules) {
				if !slices.Equal(rule.Verbs, []string{"get"}) || len(rule.ResourceNames) == 0 {
					t.Errorf("it may do more than look whether they fit: %v", rule)
				}
			}
		})
	}
	if got := kindsOf(render(t, "--api-versions", "cert-manager.io/v1")); len(got) != 0 {
		t.Errorf("no value asks for %v", got)
	}
}

// changeCertificates has cert-manager make the certificates of a release and the manager again, on an API server that gets the API of cert-manager in between.
func changeCertificates(t *testing.T, api client.Client, kubeconfig string, run func(string, ...string) string) {
	t.Helper()
	enable := []string{"kruise", ".", "--set", "externalCerts.certManager.enabled=true"}
	output, err := helm(t, "upgrade", append(enable, "--no-hooks", "--kubeconfig", kubeconfig)...)
	if err == nil || !strings.Contains(output, "externalCerts.certManager.enabled needs cert-manager, and the cluster has no API cert-manager.io/v1") {
		t.Errorf("without cert-manager: %v\n%s", err, output)
	}
	for _, kind := range []string{"Issuer", "Certificate"} {
		addKind(t, api, kind)
	}
	run("upgrade", enable...)
	key := client.ObjectKey{Namespace: "kruise-system", Name: "kruise-webhook-certs"}
	made := &unstructured.Unstructured{}
	made.SetAPIVersion("cert-manager.io/v1")
	made.SetKind("Certificate")
	if err := api.Get(t.Context(), key, made); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := api.Get(t.Context(), key, secret); !apierrors.IsNotFound(err) {
		t.Errorf("the secret of the manager is still there: %v", err)
	}
	// What cert-manager does.
	labels, _, _ := unstructured.NestedStringMap(made.Object, "spec", "secretTemplate", "labels")
	annotations, _, _ := unstructured.NestedStringMap(made.Object, "spec", "secretTemplate", "annotations")
	secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: labels, Annotations: annotations},
		Type:       corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": []byte("a"), "tls.key": []byte("b")},
	}
	if err := api.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	run("upgrade", "kruise", ".", "--reset-values")
	if err := api.Get(t.Context(), key, secret); err != nil {
		t.Errorf("the manager has no secret to make certificates in: %v", err)
	}
}

// addKind adds a kind of cert-manager to an API server.
func addKind(t *testing.T, api client.Client, kind string) {
	t.Helper()
	plural := strings.ToLower(kind) + "s"
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".cert-manager.io"}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "cert-manager.io", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
		}},
	}
	if err := api.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			t.Fatal(err)
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the API server does not take up %s", crd.Name)
		}
	}
}
