// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// An API server takes every object of the chart, and an upgrade keeps what the
// manager wrote. There is no manager here, so what needs one fails.
func TestInstallUpgradeUninstall(t *testing.T) {
	cluster := apiserver.Start(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, cluster.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	run := func(command string, args ...string) string {
		t.Helper()
		if command == "upgrade" {
			args = append(args, "--no-hooks") // no node runs the check
		}
		output, err := helm(t, command, append(args, "--kubeconfig", kubeconfig)...)
		if err != nil {
			t.Fatalf("helm %s: %v\n%s", command, err, output)
		}
		return output
	}

	const limited = "The CPU limit of the manager is 200m,"
	if notes := run("install", "kruise", "."); !strings.Contains(notes, "kubectl -n kruise-system rollout status deployment/kruise-controller-manager") || !strings.Contains(notes, limited) {
		t.Errorf("the notes are\n%s", notes)
	}
	written := certificates{secret: []byte("the key"), ca: cluster.Config.CAData} // a CA has to be one
	written.write(t, api)

	// No manager answers: writes are refused, and the message says by which webhook.
	err = api.Create(t.Context(), cloneSet("web"))
	if err == nil || !strings.Contains(err.Error(), "mcloneset.kb.io") {
		t.Errorf("creating a CloneSet without a manager: %v", err)
	}

	protects(t, api, cluster.Config)
	classify(t, api, cluster.Config)

	notes := run("upgrade", "kruise", ".", "--set", "webhookConfiguration.timeoutSeconds=5", "--set", `externalCerts.annotations.cert-manager\.io/inject-ca-from=a/b`, "--set", "manager.resources.limits.cpu=null")
	if !strings.Contains(notes, "WARNING: externalCerts.annotations") || strings.Contains(notes, "CPU limit") {
		t.Errorf("two set the CA, there is no CPU limit, and the notes are\n%s", notes)
	}
	written.check(t, api)
	run("upgrade", "kruise", ".", "--reset-values")
	written.check(t, api)
	run("rollback", "kruise", "1")
	written.check(t, api)
	hooks := &admissionv1.ValidatingWebhookConfiguration{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: webhookconfig.ConfigurationName}, hooks); err != nil || len(hooks.Webhooks) == 0 {
		t.Errorf("what is protected is lost: %v", err)
	}
	if output := run("get", "manifest", "kruise"); strings.Contains(output, "tls.key") || regexp.MustCompile(`caBundle: +\S`).MatchString(output) {
		t.Error("the release has the certificate")
	}
	run("upgrade", "kruise", ".", "--force", "--set", `featureGates=ImagePullJobGate=true\,EnableExternalCerts=true,crds.managed=true,webhookConfiguration.url=https://localhost:9443`)

	run("upgrade", "kruise", ".", "--reset-values")
	keepsScale(t, api, run)
	changeCertificates(t, api, kubeconfig, run)

	// CRDs outlive a release, and the next one takes them over.
	run("uninstall", "kruise", "--no-hooks")
	if err := api.Get(t.Context(), client.ObjectKey{Name: cloneSets}, &apiextensionsv1.CustomResourceDefinition{}); err != nil {
		t.Errorf("the CRD went with the release: %v", err)
	}
	for _, object := range []client.Object{&admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}} {
		awaitGone(t, api, object, webhookconfig.ConfigurationName)
	}
	// Nothing here ends the namespaces of the first: that of the manager has another name,
	// and that of the node agent's secrets is left out.
	run("install", "kruise", ".", "--set", "crds.keep=false,installation.namespace=kruise-next,featureGates=KruiseDaemon=false")
	run("uninstall", "kruise", "--no-hooks")
	awaitGone(t, api, &apiextensionsv1.CustomResourceDefinition{}, cloneSets)
}

// keepsScale checks that upgrades which turn scaling on and off leave the replicas alone that the autoscaler made.
func keepsScale(t *testing.T, api client.Client, run func(string, ...string) string) {
	t.Helper()
	scaled := &appsv1.Deployment{}
	check := func(when string, want int32) {
		t.Helper()
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: "kruise-system", Name: "kruise-controller-manager"}, scaled); err != nil || *scaled.Spec.Replicas != want {
			t.Errorf("%s there are %d replicas, want %d: %v", when, *scaled.Spec.Replicas, want, err)
		}
	}
	if notes := run("upgrade", "kruise", ".", "--set", "manager.autoscaling.enabled=true"); !strings.Contains(notes, "WARNING: manager.autoscaling") {
		t.Errorf("nothing measures CPU, and the notes are\n%s", notes)
	}
	check("once it is turned on", 2)
	for _, n := range []int32{5, 0} { // what the autoscaler does, and what it would leave at none
		before := client.MergeFrom(scaled.DeepCopy())
		scaled.Spec.Replicas = &n
		if err := api.Patch(t.Context(), scaled, before); err != nil {
			t.Fatal(err)
		}
		run("upgrade", "kruise", ".", "--set", "manager.autoscaling.enabled=true", "--set", "manager.log.level=5")
		check("after another upgrade", max(n, 2))
	}
	run("upgrade", "kruise", ".", "--reset-values")
	check("once it is turned off", 2)
}

func awaitGone(t *testing.T, api client.Client, object client.Object, name string) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := api.Get(t.Context(), client.ObjectKey{Name: name}, object)
		if apierrors.IsNotFound(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there: %v", name, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func cloneSet(name string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}},
		},
	}}
	object.SetNamespace("default")
	object.SetName(name)
	return object
}

// certificates are what the manager writes.
type certificates struct{ secret, ca []byte }

type carriers struct {
	secret     corev1.Secret
	mutating   admissionv1.MutatingWebhookConfiguration
	validating admissionv1.ValidatingWebhookConfiguration
	crd        apiextensionsv1.CustomResourceDefinition
}

func read(t *testing.T, api client.Client) *carriers {
	t.Helper()
	c := &carriers{}
	for _, object := range []struct {
		into client.Object
		key  client.ObjectKey
	}{
		{&c.secret, client.ObjectKey{Namespace: "kruise-system", Name: "kruise-webhook-certs"}},
		{&c.mutating, client.ObjectKey{Name: "kruise-mutating-webhook-configuration"}},
		{&c.validating, client.ObjectKey{Name: "kruise-validating-webhook-configuration"}},
		{&c.crd, client.ObjectKey{Name: cloneSets}},
	} {
		if err := api.Get(t.Context(), object.key, object.into); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c certificates) write(t *testing.T, api client.Client) {
	t.Helper()
	at := read(t, api)
	before := []client.Object{at.secret.DeepCopy(), at.mutating.DeepCopy(), at.validating.DeepCopy(), at.crd.DeepCopy()}
	at.secret.Data = map[string][]byte{"tls.key": c.secret}
	for i := range at.mutating.Webhooks {
		at.mutating.Webhooks[i].ClientConfig.CABundle = c.ca
	}
	for i := range at.validating.Webhooks {
		at.validating.Webhooks[i].ClientConfig.CABundle = c.ca
	}
	at.crd.Spec.Conversion.Webhook.ClientConfig.CABundle = c.ca
	// Patches, since the API server may be writing the status of the CRD.
	for i, o := range []client.Object{&at.secret, &at.mutating, &at.validating, &at.crd} {
		if err := api.Patch(t.Context(), o, client.MergeFrom(before[i])); err != nil {
			t.Fatal(err)
		}
	}
}

func (c certificates) check(t *testing.T, api client.Client) {
	t.Helper()
	at := read(t, api)
	if !bytes.Equal(at.secret.Data["tls.key"], c.secret) {
		t.Error("the secret lost its key")
	}
	bundles := [][]byte{at.crd.Spec.Conversion.Webhook.ClientConfig.CABundle}
	for _, w := range at.mutating.Webhooks {
		bundles = append(bundles, w.ClientConfig.CABundle)
	}
	for _, w := range at.validating.Webhooks {
		bundles = append(bundles, w.ClientConfig.CABundle)
	}
	for i, bundle := range bundles {
		if !bytes.Equal(bundle, c.ca) {
			t.Errorf("CA %d of %d is lost", i, len(bundles))
		}
	}
}
