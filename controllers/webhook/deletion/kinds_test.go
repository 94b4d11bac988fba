// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/api"
	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/rules"
)

const label = "policy.kruise.io/delete-protection"

// cluster is an API server that asks a Handler what the guards say.
type cluster struct {
	api    client.Client
	env    *envtest.Environment
	writer *webhookconfig.Writer
	// handler is that of the manager; it may be changed between requests.
	handler *Handler
	answers *explain.Store
	n       int
}

func start(t *testing.T, gates points.Gates) *cluster {
	t.Helper()
	env := apiserver.Start(t)
	env.Config.QPS, env.Config.Burst = 1000, 1000
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{env: env, answers: explain.NewStore()}
	var err error
	if c.api, err = client.New(env.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	apiserver.Install(t, env, apiserver.CRDs(t, ""))
	e := rules.Engine(t, "")
	counters, err := protection.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	rules := webhookconfig.NewRules(e, gates)
	c.handler = &Handler{
		Engine: e, Kinds: rules, Reporter: protection.NewReporter(e, c.answers, protection.WithMetrics(counters)),
		Recent: protection.NewRecent(time.Now), Live: c.api, Metadata: metadata.NewForConfigOrDie(env.Config), Now: time.Now,
	}
	server := httptest.NewTLSServer(&webhook.Admission{Handler: c.handler})
	t.Cleanup(server.Close)
	call := admissionv1.WebhookClientConfig{
		URL:      ptr.To(server.URL + "/x"),
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	none := admissionv1.SideEffectClassNone
	c.create(t,
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhookconfig.ConfigurationName}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhookconfig.ConfigurationName}},
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: certs.ValidatingConfiguration},
			Webhooks:   []admissionv1.ValidatingWebhook{{Name: "v.kb.io", ClientConfig: call, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}}},
		})
	c.writer = &webhookconfig.Writer{
		Client: c.api, Live: c.api, Rules: rules, Events: record.NewFakeRecorder(100), Now: time.Now,
		Config:    webhookconfig.Config{Namespace: "kruise-system", PodFailurePolicy: admissionv1.Ignore, TimeoutSeconds: 6},
		Undecided: prometheus.NewGauge(prometheus.GaugeOpts{Name: "undecided"}),
	}
	if err := c.writer.SyncConfigurations(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.api.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %s: %v", o.GetName(), err)
		}
	}
}

// object is one of a kind, by what of it is not metadata, with a name of its own.
func (c *cluster) object(t *testing.T, manifest, value string) *unstructured.Unstructured {
	t.Helper()
	c.n++
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(manifest, "NAME", fmt.Sprintf("x%d", c.n))), &o.Object); err != nil {
		t.Fatalf("reading %s: %v", manifest, err)
	}
	if o.GetName() == "" {
		o.SetName(fmt.Sprintf("x%d", c.n))
	}
	if kind := o.GetKind(); kind != "Namespace" && kind != "CustomResourceDefinition" {
		o.SetNamespace("default")
	}
	if value != "" {
		o.SetLabels(map[string]string{label: value})
	}
	c.create(t, o)
	return o
}

func (c *cluster) patch(t *testing.T, o client.Object, patch string) {
	t.Helper()
	if err := c.api.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// child makes what an object takes along, if that is not in its spec.
func (c *cluster) child(t *testing.T, of *unstructured.Unstructured) {
	t.Helper()
	switch of.GetKind() {
	case "Namespace":
		c.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: of.GetName(), Name: "default"}}, aPod(of.GetName(), "web"))
	case "CustomResourceDefinition":
		c.thing(t, of, "one")
	}
}

func aPod(ns, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x"}}}}
}

// thing makes an object of a CRD, once the API server serves that.
func (c *cluster) thing(t *testing.T, crd *unstructured.Unstructured, name string) *unstructured.Unstructured {
	t.Helper()
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("x.example/v2")
		o.SetKind(kind)
		o.SetName(name)
		if err = c.api.Create(t.Context(), o); err == nil {
			return o
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("creating a %s: %v", kind, err)
	return nil
}

const (
	template = `{metadata: {labels: {app: x}}, spec: {containers: [{name: main, image: x}]}}`
	scaled   = `spec: {replicas: REPLICAS, selector: {matchLabels: {app: x}}, template: ` + template + `}`
	crd      = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: NAMEs.x.example}, spec: {group: x.example, scope: Cluster,
 names: {plural: NAMEs, singular: NAME, kind: NAME, listKind: NAMEList}, versions: [
 {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}},
 {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
	united = `{selector: {matchLabels: {app: x}}, replicas: REPLICAS, topology: {subsets: [{name: a}]}, template: {deploymentTemplate: {metadata: {labels: {app: x}}, ` +
		`spec: {selector: {matchLabels: {app: x}}, template: ` + template + `}}}}`
)

// Every kind of DP-01: what is denied, and what is not.
func TestKinds(t *testing.T) {
	c := start(t, points.Gates{Deletion: true, CRDCascading: true})
	workload := func(apiVersion, kind string) string {
		return "{apiVersion: " + apiVersion + ", kind: " + kind + ", " + scaled + "}"
	}
	rows := []struct {
		kind, version, manifest string
		children                string // what the denial says of them; empty if Cascading protects nothing
		resource                string
	}{
		{"Namespace", "v1", "{apiVersion: v1, kind: Namespace}", "active pods 1>0", "namespaces"},
		{"CustomResourceDefinition", "v1", crd, "active CRs 1>0", "customresourcedefinitions.apiextensions.k8s.io"},
		{"Deployment", "v1", workload("apps/v1", "Deployment"), "replicas 2>0", "deployments.apps"},
		{"ReplicaSet", "v1", workload("apps/v1", "ReplicaSet"), "replicas 2>0", "replicasets.apps"},
		{"StatefulSet", "v1", workload("apps/v1", "StatefulSet"), "replicas 2>0", "statefulsets.apps"},
		{"CloneSet", "v1alpha1", workload("apps.kruise.io/v1alpha1", "CloneSet"), "replicas 2>0", "clonesets.apps.kruise.io"},
		{"CloneSet", "v1beta1", workload("apps.kruise.io/v1beta1", "CloneSet"), "replicas 2>0", "clonesets.apps.kruise.io"},
		{"Advanced StatefulSet", "v1alpha1", workload("apps.kruise.io/v1alpha1", "StatefulSet"), "replicas 2>0", "statefulsets.apps.kruise.io"},
		{"Advanced StatefulSet", "v1beta1", workload("apps.kruise.io/v1beta1", "StatefulSet"), "replicas 2>0", "statefulsets.apps.kruise.io"},
		{"UnitedDeployment", "v1alpha1", "{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, spec: " + united + "}", "replicas 2>0", "uniteddeployments.apps.kruise.io"},
		{"UnitedDeployment", "v1beta1", "{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, spec: " + united + "}", "replicas 2>0", "uniteddeployments.apps.kruise.io"},
		{"Service", "v1", "{apiVersion: v1, kind: Service, spec: {type: ExternalName, externalName: x.example}}", "", "services"},
		{"Ingress", "v1", "{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {defaultBackend: {service: {name: x, port: {number: 80}}}}}", "", "ingresses.networking.k8s.io"},
	}
	probe := c.object(t, rows[11].manifest, "Always")
	eventually(t, "the API server knows its webhooks", func() bool { return apierrors.IsForbidden(c.api.Delete(t.Context(), probe, client.DryRunAll)) })

	table := fmt.Sprintf("%-24s %-9s %-7s %-28s %-20s %-7s %-7s %-11s\n", "KIND", "VERSION", "ALWAYS", "CASCADING", "CASCADING, WITHOUT", "NONE", "OTHER", "TERMINATING")
	for _, row := range rows {
		t.Run(row.kind+" "+row.version, func(t *testing.T) {
			with := func(replicas int) string { return strings.ReplaceAll(row.manifest, "REPLICAS", fmt.Sprint(replicas)) }
			was := map[bool]string{true: "denied", false: "allowed"}
			try := func(o client.Object, want string, options ...client.DeleteOption) string {
				t.Helper()
				err := c.api.Delete(t.Context(), o, options...)
				if denied := err != nil; denied != (want != "") || denied && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want)) {
					t.Errorf("deleting it: %v, want %q", err, want)
				}
				return was[err != nil]
			}
			kept := func(o client.Object) {
				t.Helper()
				if err := c.api.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.GetDeletionTimestamp() != nil {
					t.Errorf("it is gone: %v", err)
				}
			}
			const text = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection="

			always := c.object(t, with(0), "Always")
			try(always, text+"Always", client.DryRunAll)
			denied := try(always, text+"Always")
			kept(always)
			all := &unstructured.Unstructured{}
			all.SetGroupVersionKind(always.GroupVersionKind())
			options := []client.DeleteAllOfOption{client.MatchingLabels{label: "Always"}, client.MatchingFields{"metadata.name": always.GetName()}}
			if ns := always.GetNamespace(); ns != "" {
				options = append(options, client.InNamespace(ns))
			}
			// The API server knows no deletion of all namespaces.
			if err := c.api.DeleteAllOf(t.Context(), all, options...); row.kind != "Namespace" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text+"Always")) {
				t.Errorf("deleting all: %v", err)
			}
			kept(always)
			parts := strings.Fields("kubectl label " + row.resource + " " + always.GetName())
			if err := c.api.Delete(t.Context(), always); err == nil || !strings.Contains(err.Error(), strings.Join(parts, " ")) || !strings.Contains(err.Error(), "regatta why --request ") {
				t.Errorf("it does not say what to do: %v", err)
			}

			cascading := c.object(t, with(2), "Cascading")
			c.child(t, cascading)
			want := ""
			if row.children != "" {
				want = text + "Cascading and " + row.children
			}
			by := try(cascading, want)
			if row.children != "" {
				by = "denied: " + row.children
				kept(cascading)
			}
			empty := try(c.object(t, with(0), "Cascading"), "")
			none := try(c.object(t, with(2), ""), "")
			other := try(c.object(t, with(2), "always"), "")

			going := c.object(t, with(2), "")
			c.patch(t, going, `{"metadata":{"finalizers":["x.example/y"]}}`)
			try(going, "")
			c.patch(t, going, `{"metadata":{"labels":{"`+label+`":"Always"}}}`)
			table += fmt.Sprintf("%-24s %-9s %-7s %-28s %-20s %-7s %-7s %-11s\n", row.kind, row.version, denied, by, empty, none, other, try(going, ""))
		})
	}
	t.Logf("what happens to a delete, by the label\n%s", table)

	t.Run("every kind of the guards is tried", func(t *testing.T) {
		for _, k := range c.handler.Kinds.(*webhookconfig.Rules).CurrentAnswer(t.Context()).Kinds {
			name := k.Resource
			if k.Group != "" {
				name += "." + k.Group
			}
			if i := slices.IndexFunc(rows, func(r struct{ kind, version, manifest, children, resource string }) bool { return r.resource == name }); i < 0 || (rows[i].children == "") != (k.Cascading == "") {
				t.Errorf("%s is not", name)
			}
		}
	})
	t.Run("a cascade is not stopped for its owner's sake", func(t *testing.T) {
		config := rest.CopyConfig(c.env.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:generic-garbage-collector"}
		collector, err := client.New(config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c.create(t, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "gc"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kube-system", Name: "generic-garbage-collector"}},
		})
		owner := c.object(t, strings.ReplaceAll(rows[2].manifest, "REPLICAS", "1"), "Always")
		for value, denied := range map[string]bool{"": false, "Always": true} {
			o := c.object(t, strings.ReplaceAll(rows[3].manifest, "REPLICAS", "1"), value)
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true)}})
			if err := c.api.Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the collector may delete", func() bool {
				err := collector.Delete(t.Context(), o)
				return err == nil && !denied || err != nil && strings.Contains(err.Error(), "ResourcesProtectionDeletion") == denied && denied
			})
		}
	})
	t.Run("of a namespace pods and then bound claims count, and only those that live", c.namespaces)
	t.Run("of a definition objects count that live", c.definitions)
}
