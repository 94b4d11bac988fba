// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/gatedkinds"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/test/apiserver"
)

const freeze = `package extend.rollout.freeze

hold contains {"reason": "Frozen", "message": "Nothing moves."} if input.update > 0
`

const maps = `package extend.protection.maps

guard contains {"group": "", "resource": "configmaps", "operations": ["DELETE"]}

deny contains {"reason": "Kept", "message": "Maps are kept."} if input.object.resource == "configmaps"
`

// One API server, and the managers of an installation from its first second to
// its last.
func TestManager(t *testing.T) {
	ctrl.SetLogger(klog.Background())
	env := apiserver.Start(t)
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	create := func(objects ...client.Object) {
		t.Helper()
		for _, o := range objects {
			if err := api.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	secret := types.NamespacedName{Namespace: "kruise-system", Name: "kruise-webhook-certs"}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: secret.Namespace}})

	t.Run("without certificates it ends and says why", func(t *testing.T) {
		for name, tc := range map[string]struct {
			args []string
			want string
		}{
			"of its own":      {nil, `Secret "kruise-webhook-certs" not found`},
			"of another tool": {[]string{"--feature-gates=EnableExternalCerts=true", "--webhook-initialize-timeout=1s"}, `were not ready after 1s, which is --webhook-initialize-timeout: reading secret kruise-system/kruise-webhook-certs: secrets "kruise-webhook-certs" not found`},
		} {
			p := startManager(t, env.KubeConfig, nil, append(tc.args, "--enable-leader-election=false")...)
			if err := p.wait(); err == nil || !strings.Contains(p.text(), tc.want) {
				t.Errorf("%s: %v\nwant %s\ngot %s", name, err, tc.want, p.text())
			}
		}
	})

	url := "https://localhost:9443/x"
	fail, none := admissionv1.Ignore, admissionv1.SideEffectClassNone
	config := admissionv1.WebhookClientConfig{URL: &url}
	create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhookconfig.ConfigurationName}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhookconfig.ConfigurationName}},
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "kruise-validating-webhook-configuration"},
			Webhooks:   []admissionv1.ValidatingWebhook{{Name: "vcloneset.kb.io", ClientConfig: config, FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}}},
		},
		&admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "kruise-mutating-webhook-configuration"},
			Webhooks:   []admissionv1.MutatingWebhook{{Name: "mcloneset.kb.io", ClientConfig: config, FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}}},
		},
	)
	logged := filepath.Join(t.TempDir(), "decisions.log")
	first := startManager(t, env.KubeConfig, nil, "--decision-log-file="+logged)
	t.Run("without CRDs it serves webhooks, leads, and says what is missing", func(t *testing.T) {
		eventually(t, "ready", first.ready)
		eventually(t, "leading", func() bool { return first.leads() == "1" })
		eventually(t, "a line about the CRD", func() bool {
			return strings.Contains(first.text(), `A CRD is not installed; waiting for it`) && strings.Contains(first.text(), `crd="clonesets.apps.kruise.io"`)
		})
		if code, body := first.get(first.health, "/healthz"); code != http.StatusOK {
			t.Errorf("healthz: %d %s", code, body)
		}
		hooks := &admissionv1.MutatingWebhookConfiguration{}
		if err := api.Get(t.Context(), types.NamespacedName{Name: "kruise-mutating-webhook-configuration"}, hooks); err != nil || len(hooks.Webhooks[0].ClientConfig.CABundle) == 0 {
			t.Errorf("no CA: %v", err)
		}
		if err := CheckUninstall(t.Context(), env.Config); err != nil {
			t.Errorf("what is not installed keeps it from being uninstalled: %v", err)
		}
	})

	crds := apiserver.CRDs(t, "https://localhost:9443/convert")
	apiserver.Install(t, env, crds)
	bundle := &policyv1alpha1.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "freeze"}}
	bundle.Spec.Files = map[string]policyv1alpha1.FileText{"freeze.rego": freeze}
	create(bundle)
	ready := func() *metav1.Condition {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(bundle.Status.Conditions, policyv1alpha1.PolicyBundleReady)
		if c == nil || c.ObservedGeneration != bundle.Generation {
			return &metav1.Condition{}
		}
		return c
	}
	guarded := func() string {
		hooks := &admissionv1.ValidatingWebhookConfiguration{}
		if err := api.Get(t.Context(), types.NamespacedName{Name: webhookconfig.ConfigurationName}, hooks); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, w := range hooks.Webhooks {
			if len(w.ClientConfig.CABundle) == 0 || !strings.HasPrefix(*w.ClientConfig.URL, "https://localhost:9443/validate-") {
				t.Errorf("%s is called at %v", w.Name, w.ClientConfig)
			}
			names = append(names, w.Name)
		}
		return strings.Join(names, " ")
	}
	t.Run("the webhook configuration follows the kinds that the policies protect", func(t *testing.T) {
		const builtin = "vdeletion-always.kb.io vdeletion-cascading.kb.io"
		eventually(t, "what the built-in policies are about", func() bool { return guarded() == builtin })
		rule := &policyv1alpha1.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "maps"}}
		rule.Spec.Files = map[string]policyv1alpha1.FileText{"maps.rego": maps}
		create(rule)
		eventually(t, "what a user's policy is about", func() bool { return guarded() == builtin+" vguard.kb.io" })
		budget := manifest(t, "PodUnavailableBudget")
		create(budget)
		eventually(t, "a namespace with a budget", func() bool { return strings.Contains(guarded(), "vpodeviction.kb.io") })
		eventually(t, "a budget with a status", func() bool {
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(budget), budget); err != nil {
				t.Fatal(err)
			}
			seen, _, _ := unstructured.NestedInt64(budget.Object, "status", "observedGeneration")
			return seen == budget.GetGeneration()
		})
		for _, o := range []client.Object{rule, budget} {
			if err := api.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "what is left", func() bool { return guarded() == builtin })
	})
	var second *process
	outer := t // of processes that outlive a part of the test
	enforced := t.Run("bundles are enforced once CRDs are there, by a gate of a quarter of the memory", func(t *testing.T) {
		eventually(t, "an active bundle", func() bool { return ready().Reason == "Activated" })
		second = startManager(outer, env.KubeConfig, nil)
		eventually(t, "a second replica that is ready", second.ready)
		if second.leads() != "0" || first.leads() != "1" {
			t.Errorf("leading: %s and %s", first.leads(), second.leads())
		}
		kept := &appsv1.ControllerRevisionList{}
		if err := api.List(t.Context(), kept, client.InNamespace(secret.Namespace), client.MatchingLabels{"policy.kruise.io/bundle": "freeze"}); err != nil || len(kept.Items) != 1 || !metav1.IsControlledBy(&kept.Items[0], bundle) {
			t.Errorf("kept are %v, %v", kept.Items, err)
		}
	})
	if !enforced {
		return
	}
	t.Run("broken newest files are reported once", func(t *testing.T) {
		eventually(t, "a change of the files", func() bool { // replicas write the status at any time
			ready()
			bundle.Spec.Files["freeze.rego"] = "package extend.rollout.freeze\nhold contains"
			err := api.Update(t.Context(), bundle)
			if err != nil && !apierrors.IsConflict(err) {
				t.Fatal(err)
			}
			return err == nil
		})
		eventually(t, "a refusal", func() bool { return ready().Reason == "CompileFailed" && bundle.Status.ActiveRevision != "" })
		events := func() int {
			list := &corev1.EventList{}
			if err := api.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			return len(slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.Reason != "CompileFailed" || e.Count > 1 }))
		}
		eventually(t, "an event", func() bool { return events() == 1 })
	})
	t.Run("workloads keep it from being uninstalled", func(t *testing.T) {
		replicas := int32(0)
		set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		set.Spec.Replicas = &replicas
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		set.Spec.Template = corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
		}
		create(set)
		if err := CheckUninstall(t.Context(), env.Config); err == nil || err.Error() != "there still exists some clonesets in the cluster" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a SidecarSet has a revision, and its status names it", func(t *testing.T) {
		set := manifest(t, "SidecarSet")
		create(set)
		eventually(t, "a revision of the SidecarSet", func() bool {
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
				t.Fatal(err)
			}
			name, _, _ := unstructured.NestedString(set.Object, "status", "latestRevision")
			found := &appsv1.ControllerRevision{}
			return name != "" && api.Get(t.Context(), client.ObjectKey{Namespace: "kruise-system", Name: name}, found) == nil
		})
	})
	t.Run("objects of kinds whose feature gate is off say so", func(t *testing.T) {
		gates, err := features.New()
		if err != nil {
			t.Fatal(err)
		}
		unserved := gatedkinds.ListUnserved(scheme, gates.Enabled)
		if len(unserved) != 3 { // ImagePullJob, ImageListPullJob, ResourceDistribution
			t.Errorf("by default there is no controller of %v", unserved)
		}
		for _, kind := range unserved {
			object := manifest(t, kind.Kind)
			create(object)
			eventually(t, "condition of a "+kind.Kind, func() bool {
				if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
				conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
				return len(conditions) == 1 && conditions[0].(map[string]any)["type"] == gatedkinds.Stalled
			})
		}
	})
	t.Run("a user who may get a CloneSet gets the reason, from the replica that decides", func(t *testing.T) {
		user, err := env.AddUser(envtest.User{Name: "jane"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ask := func(config *rest.Config, query string) (int, string) {
			return why(t, config, first, explain.APIPath+"/namespaces/default/explanations/"+query)
		}
		eventually(t, "an answer", func() bool {
			code, body := ask(env.Config, "web?kind=CloneSet")
			return code == http.StatusOK && strings.Contains(body, `"web"`)
		})
		for name, tc := range map[string]struct {
			config *rest.Config
			query  string
			code   int
			want   string
		}{
			"a user who may not":       {user.Config(), "web?kind=CloneSet", 403, `jane may not get explanations.decisions.kruise.io default/web`},
			"an anonymous caller":      {&rest.Config{}, "web?kind=CloneSet", 401, "does not know the caller"},
			"a CloneSet there is none": {env.Config, "none?kind=CloneSet", 404, "no manager has decided anything about CloneSet default/none"},
		} {
			if code, body := ask(tc.config, tc.query); code != tc.code || !strings.Contains(body, tc.want) {
				t.Errorf("%s: %d %s", name, code, body)
			}
		}
	})
	t.Run("a user who may list decisions gets all decisions", func(t *testing.T) {
		reader, err := env.AddUser(envtest.User{Name: "rita"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		other, err := env.AddUser(envtest.User{Name: "joe"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		create(&rbacv1.ClusterRole{ // as charts/kruise has it
			ObjectMeta: metav1.ObjectMeta{Name: "kruise-decisions-reader"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{explain.Group}, Resources: []string{explain.Decisions}, Verbs: []string{"list"}}},
		}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "rita-reads"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kruise-decisions-reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "rita"}},
		})
		eventually(t, "decisions", func() bool {
			code, body := why(t, reader.Config(), first, explain.APIPath+"/"+explain.Decisions)
			records, err := record.Read(strings.NewReader(body))
			return code == http.StatusOK && err == nil && len(records) > 0 && records[0].Origin != ""
		})
		if code, body := why(t, other.Config(), first, explain.APIPath+"/"+explain.Decisions); code != http.StatusForbidden || !strings.Contains(body, "joe may not list decisions.decisions.kruise.io") {
			t.Errorf("%d %s", code, body)
		}
	})
	t.Run("who loses the lease ends, and another goes on with what was good", func(t *testing.T) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: "kruise-manager"}}
		// The leader renews it all the while, so an update would be in conflict.
		theft := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"another manager"}}`))
		if err := api.Patch(t.Context(), lease, theft); err != nil {
			t.Fatal(err)
		}
		if err := first.wait(); err == nil || !strings.Contains(first.text(), "leader election lost") {
			t.Errorf("it ended with %v", err)
		}
		text, err := os.ReadFile(logged)
		if err != nil {
			t.Fatal(err)
		}
		if records, err := record.Read(bytes.NewReader(text)); err != nil || len(records) == 0 {
			t.Errorf("%d decisions are logged, %v", len(records), err)
		}
		eventually(t, "another leader", func() bool { return second.leads() == "1" })
		eventually(t, "the last good bundle", func() bool { c := ready(); return c.Reason == "CompileFailed" && bundle.Status.ActiveRevision != "" })
		if text := second.text(); !strings.Contains(text, "The newest files of a policy bundle are not enforced") && strings.Contains(text, "panic") {
			t.Error(text)
		}
	})
	t.Run("who is asked to end does, and gives the lease back", func(t *testing.T) {
		if err := second.stop(); err != nil {
			t.Errorf("it ended with %v", err)
		}
		lease := &coordinationv1.Lease{}
		if err := api.Get(t.Context(), types.NamespacedName{Namespace: secret.Namespace, Name: "kruise-manager"}, lease); err != nil || *lease.Spec.HolderIdentity != "" {
			t.Errorf("the lease is %v, %v", lease.Spec, err)
		}
	})
}

// manifest is an object of a kind that is fine, by the cases of its webhook.
func manifest(t *testing.T, kind string) *unstructured.Unstructured {
	t.Helper()
	path := filepath.Join("..", "webhook", strings.ToLower(kind), "testdata", "cases.yaml")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases struct{ Base map[string]any }
	if err := yaml.Unmarshal(raw, &cases); err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
	object := &unstructured.Unstructured{Object: cases.Base}
	object.SetName("unserved")
	object.SetNamespace("default") // the API server ignores it for kinds of the cluster
	return object
}

// why asks a manager with the client certificate of a config.
func why(t *testing.T, config *rest.Config, p *process, path string) (int, string) {
	t.Helper()
	conf := &tls.Config{InsecureSkipVerify: true} // the CA is the manager's own
	if len(config.CertData) > 0 {
		cert, err := tls.X509KeyPair(config.CertData, config.KeyData)
		if err != nil {
			t.Fatal(err)
		}
		conf.Certificates = []tls.Certificate{cert}
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}}
	resp, err := c.Get("https://" + p.explain + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}
