// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
	"github.com/regatta-sh/regatta/test/apiserver"
)

func newNode(name, architecture, runtime, kubelet string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{
		Architecture: architecture, OperatingSystem: "linux", ContainerRuntimeVersion: runtime, KubeletVersion: kubelet,
	}}}
}

// A cluster without Regatta, from one where nothing is in the way to all that can be.
func TestBeforeAnInstallation(t *testing.T) {
	s := newShop(t)
	node := newNode("n1", "amd64", "containerd://2.1.0", "v1.36.0")
	s.create(t, node)
	t.Run("nothing is in the way", func(t *testing.T) {
		r, text, code := s.runs(t, "", "-o", "json", "--strict")
		if code != exit.Fine || r.Phase != Before || r.Schema != Schema || r.Result != Fine || len(r.Findings) < 6 {
			t.Errorf("it ends with %d: %s", code, text)
		}
		_, text, code = s.runs(t, "")
		if code != exit.Fine || !strings.HasPrefix(text, "STATUS") || !strings.Contains(text, "0 block, 0 warn, 0 unknown") {
			t.Errorf("it ends with %d: %s", code, text)
		}
	})
	t.Run("a node that cannot run it", func(t *testing.T) {
		s.create(t, newNode("n2", "s390x", "docker://27.0", "v1.31.2"))
		r, text, code := s.runs(t, "", "-o", "json")
		if code != exit.Fine {
			t.Errorf("warnings end it with %d: %s", code, text)
		}
		wants(t, r, "Warns | nodes | Nodes n2 | status.nodeInfo.architecture | the image is for amd64 and arm64, and not for s390x",
			"Warns | nodes | Nodes n2 | status.nodeInfo.containerRuntimeVersion", "Warns | nodes | Nodes n2 | status.nodeInfo.kubeletVersion | their kubelet is 1.31")
		if _, text, code := s.runs(t, "", "--strict"); code != exit.Refused {
			t.Errorf("with --strict they end it with %d: %s", code, text)
		}
	})
	t.Run("who asks", func(t *testing.T) { testRights(t, s) })
	t.Run("who refuses", func(t *testing.T) { testAdmission(t, s) })
	t.Run("a webhook that refuses", func(t *testing.T) { testWebhook(t, s) })
	t.Run("a policy that refuses", func(t *testing.T) { testPolicy(t, s) })
	t.Run("what is typed", func(t *testing.T) { testTyping(t, s) })
	t.Run("a request that hangs", func(t *testing.T) { testSilence(t, s) })
	t.Run("OpenKruise", func(t *testing.T) { testOpenKruise(t, s) })
	t.Run("half an installation", func(t *testing.T) { testLeftovers(t, s) })
}

func testRights(t *testing.T, s *shop) {
	jane := s.as(t, "jane")
	r, text, code := jane.runs(t, "", "-o", "json", "-n", "default")
	if code != exit.Refused {
		t.Errorf("one who may do nothing: it ends with %d: %s", code, text)
	}
	wants(t, r, "Blocks | rights | you | create customresourcedefinitions.apiextensions.k8s.io | you may not",
		"Blocks | rights | you | create clusterroles.rbac.authorization.k8s.io", "Blocks | rights | you | create secrets in namespace default",
		"Unknown | nodes | Nodes | list | you may not list it", "Unknown | there | Namespace kruise-system | get")
	// One who may make every object, and may not grant what they have not.
	everything := []string{"*"}
	s.create(t,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "maker"}, Rules: []rbacv1.PolicyRule{{APIGroups: everything, Resources: everything, Verbs: []string{"create", "get", "list", "update"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "maker"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "maker"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}}},
	)
	apiserver.Eventually(t, "asking as one who may not escalate", func() string {
		r, text, code = jane.runs(t, "", "-o", "json")
		if at := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Status == Unknown }); at >= 0 {
			return "the role is not seen yet: " + r.Findings[at].Message
		}
		return ""
	})
	if code != exit.Refused {
		t.Errorf("one who may not escalate: it ends with %d: %s", code, text)
	}
	wants(t, r, "Blocks | rights | ClusterRole kruise-manager-role | rules | it would be refused", "Fine | rights | you")
}

func testAdmission(t *testing.T, s *shop) {
	s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}}})
	r, text, code := s.runs(t, "", "-o", "json", "--manager-namespace", "apps")
	if code != exit.Refused {
		t.Errorf("it ends with %d: %s", code, text)
	}
	wants(t, r, "Blocks | there | Namespace apps | metadata.annotations | it is there and of no release",
		"Blocks | admission | Pod apps/kruise-daemon-check | Pod Security of namespace apps | it would be refused", "Fine | admission | dry run")
	for _, f := range r.Findings {
		if strings.Contains(f.Object, "controller-manager-check") {
			t.Errorf("the manager, which is restricted, is said to be refused: %v", f)
		}
	}
	hook := func(name, group, resource string, policy admissionv1.FailurePolicyType, selector map[string]string) *admissionv1.ValidatingWebhookConfiguration {
		return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionv1.ValidatingWebhook{{
			Name: name + ".example.com", FailurePolicy: &policy, SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: ptr.To(int32(1)),
			ClientConfig:      admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "gone", Name: name}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: selector},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource},
			}}},
		}}}
	}
	// In a namespace that is not there yet, the labels that it will have are what counts.
	s.create(t, hook("dead", "apps", "deployments", admissionv1.Fail, map[string]string{"control-plane": "openkruise"}), hook("ignored", "apps", "deployments", admissionv1.Ignore, nil), hook("elsewhere", "apps", "deployments", admissionv1.Fail, map[string]string{"team": "a"}),
		hook("pods", "", "pods", admissionv1.Fail, map[string]string{"control-plane": "openkruise"}), hook("sets", "apps", "replicasets", admissionv1.Fail, map[string]string{"control-plane": "openkruise"}))
	r, text, code = s.runs(t, "", "-o", "json")
	if code != exit.Refused {
		t.Errorf("with a webhook that nothing answers it ends with %d: %s", code, text)
	}
	wants(t, r, "Blocks | webhooks | ValidatingWebhookConfiguration dead | webhook dead.example.com failurePolicy | nothing answers it, so that what it is asked about is refused: Deployment kruise-system/kruise-controller-manager; its Service gone/dead is not there",
		"Warns | webhooks | ValidatingWebhookConfiguration ignored", "Fine | webhooks | webhooks of others | rules | 4 are asked",
		"Blocks | webhooks | ValidatingWebhookConfiguration pods | webhook pods.example.com failurePolicy | nothing answers it, so that what it is asked about is refused: Pod kruise-system/kruise-daemon-check, Pod kruise-system/kruise-controller-manager-check",
		"Blocks | webhooks | ValidatingWebhookConfiguration sets | webhook sets.example.com failurePolicy")
	s.create(t, hook("everywhere", "apps", "deployments", admissionv1.Fail, nil))
	apiserver.Eventually(t, "a dry run", func() string {
		r, _, _ = s.runs(t, "", "-o", "json")
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == "admission" && f.Field == "webhook everywhere.example.com" }) {
			return "the API server does not ask the webhook yet"
		}
		return ""
	})
}

// testWebhook has a policy engine that answers.
func testWebhook(t *testing.T, s *shop) {
	a := newAnswers(t, "images are to be signed")
	url := strings.Replace(a.URL, "127.0.0.1", "localhost", 1) + "/v1/admit"
	s.create(t, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "gatekeeper"}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "validation.gatekeeper.sh", SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionv1.WebhookClientConfig{URL: &url, CABundle: a.cert},
		Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{
			APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"daemonsets"},
		}}},
	}}})
	var r Report
	apiserver.Eventually(t, "the webhook", func() string {
		if r, _, _ = s.runs(t, "", "-o", "json"); r.Result != Blocks {
			return "it is not asked yet"
		}
		return ""
	})
	wants(t, r, `Blocks | admission | DaemonSet kruise-system/kruise-daemon | webhook validation.gatekeeper.sh | it would be refused: admission webhook "validation.gatekeeper.sh" denied the request: images are to be signed | leave the namespace out in spec.match.excludedNamespaces`)
}

func testPolicy(t *testing.T, s *shop) {
	s.create(t,
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "images"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "object.spec.containers.all(c, c.image.startsWith('mirror.example.com/'))", Message: "images are from the mirror"}},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "images"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "images", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
	)
	var r Report
	apiserver.Eventually(t, "the policy", func() string {
		if r, _, _ = s.runs(t, "", "-o", "json"); r.Result != Blocks {
			return "it is not asked yet"
		}
		return ""
	})
	wants(t, r, "Blocks | admission | Pod kruise-system/kruise-controller-manager-check | ValidatingAdmissionPolicy images | it would be refused", "Blocks | admission | Pod kruise-system/kruise-daemon-check")
	if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.Message, "images are from the mirror") }) {
		t.Error("what the policy says is not told")
	}
	// With the chart's own output, of a mirror, nothing is refused.
	mirrored := strings.NewReplacer("ghcr.io/", "mirror.example.com/", "VERSION", "1.0.0").Replace(sample)
	if r, text, code := s.runs(t, mirrored, "-o", "json", "--before", "-f", "-"); code != exit.Fine {
		t.Errorf("with images of the mirror it ends with %d: %s %v", code, text, r.Result)
	}
}

func testTyping(t *testing.T, s *shop) {
	for name, tc := range map[string]struct {
		input string
		args  []string
		code  int
		says  string
	}{
		"a file that is not there":       {"", []string{"-f", "/nowhere"}, exit.Usage, `--filename is "/nowhere"`},
		"no objects":                     {"# nothing", []string{"-f", "-"}, exit.Usage, "there are no objects in it"},
		"no YAML":                        {"a: [", []string{"-f", "-"}, exit.Usage, "document 1"},
		"an object without a kind":       {"a: 1", []string{"-f", "-"}, exit.Usage, "document 1 has no apiVersion or no kind"},
		"an object without a name":       {"apiVersion: v1\nkind: Pod", []string{"-f", "-"}, exit.Usage, "document 1, a Pod, has no metadata.name"},
		"before and after":               {"", []string{"--before", "--after"}, exit.Usage, "before"},
		"no time":                        {"", []string{"--timeout", "0s"}, exit.Usage, "--timeout is 0s"},
		"no API server":                  {"", []string{"--server", "http://127.0.0.1:1", "--timeout", "1s"}, exit.Failed, "asking the API server for its version"},
		"a kind that is not served":      {"apiVersion: example.com/v1\nkind: X\nmetadata: {name: x}", []string{"-f", "-"}, exit.Refused, "the API server does not serve it"},
		"after, where nothing installed": {"", []string{"--after"}, exit.Refused, "Deployment kruise-system/kruise-controller-manager"},
	} {
		t.Run(name, func(t *testing.T) {
			_, text, code := s.runs(t, tc.input, tc.args...)
			if code != tc.code || !strings.Contains(text, tc.says) {
				t.Errorf("it ends with %d, want %d and %q: %s", code, tc.code, tc.says, text)
			}
		})
	}
}

// hanging never answers requests for some resources.
type hanging struct{ http.RoundTripper }

func (h hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/nodes") || strings.HasSuffix(r.URL.Path, "/mutatingwebhookconfigurations") && r.Method == http.MethodGet {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return h.RoundTripper.RoundTrip(r)
}

// testSilence has an API server that does not answer some requests: they are findings, and the others are made.
func testSilence(t *testing.T, s *shop) {
	config := rest.CopyConfig(s.env.Config)
	config.QPS, config.Burst = 50, 100
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return hanging{rt} })
	r, err := InspectCluster(t.Context(), config, Options{Namespace: "kruise-system", Release: "kruise", ReleaseNamespace: "default", Timeout: 3 * time.Second}, nil)
	if err != nil || r.Result != Blocks {
		t.Fatalf("it comes to %v, %v", r, err)
	}
	wants(t, *r, "Blocks | nodes | Nodes | list | no answer in 3s", "Blocks | webhooks | MutatingWebhookConfigurations | list | no answer in 3s", "Fine | rights | you", "Fine | admission | dry run")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := InspectCluster(ended, s.env.Config, Options{Namespace: "kruise-system", Timeout: time.Second}, nil); err == nil {
		t.Error("a check that is ended says that all is well")
	}
}

// testOpenKruise has a manager of OpenKruise, which has none of the labels of the chart.
func testOpenKruise(t *testing.T, s *shop) {
	labels := map[string]string{"control-plane": "controller-manager"}
	s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise"}}, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kruise", Name: preflight.ManagerDeployment, Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "openkruise/kruise-manager:v1.8.0"}}}}},
	})
	r, text, code := s.runs(t, "", "-o", "json", "--manager-namespace", "kruise")
	if code != exit.Refused || r.Phase != Before {
		t.Errorf("it ends with %d: %s", code, text)
	}
	wants(t, r, "Blocks | installed | Deployment kruise/kruise-controller-manager | metadata.labels | it is of OpenKruise, or of another installation | regatta preflight")
}

func testLeftovers(t *testing.T, s *shop) {
	crds, err := chartCRDs()
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]string{"meta.helm.sh/release-name": "kruise", "meta.helm.sh/release-namespace": "default"}
	crds[0].SetAnnotations(ours)
	s.create(t, crds[0], crds[1],
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sh.helm.release.v1.kruise.v1", Labels: map[string]string{"owner": "helm", "name": "kruise", "status": "superseded", "version": "9"}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sh.helm.release.v1.kruise.v2", Labels: map[string]string{"owner": "helm", "name": "kruise", "status": "pending-install", "version": "10"}}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kruise-manager-role", Annotations: map[string]string{"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "else"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-system"}},
	)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-system"}}
	if err := s.Delete(t.Context(), namespace); err != nil { // nothing ends it here
		t.Fatal(err)
	}
	r, text, code := s.runs(t, "", "-o", "json", "-n", "default")
	if code != exit.Refused || r.Phase != Before {
		t.Errorf("it ends with %d: %s", code, text)
	}
	wants(t, r, "Blocks | there | Namespace kruise-system | metadata.deletionTimestamp",
		"Blocks | there | Release default/kruise | revision 10 | it is pending-install",
		"Blocks | there | ClusterRole kruise-manager-role | metadata.annotations | it is of release else/other",
		"Warns | there | CustomResourceDefinition advancedcronjobs.apps.kruise.io | metadata.annotations | it was left by a release of the same name",
		"Blocks | there | CustomResourceDefinition broadcastjobs.apps.kruise.io | metadata.annotations | it is there and of no release", "Fine | admission | dry run")
	// A CRD that waits for the finalizer of something that is gone.
	stuck := crds[1]
	if err := s.Patch(t.Context(), stuck, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/x"]}}`))); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), stuck); err != nil {
		t.Fatal(err)
	}
	r, _, _ = s.runs(t, "", "-o", "json", "-n", "default")
	wants(t, r, "Blocks | there | CustomResourceDefinition broadcastjobs.apps.kruise.io | metadata.deletionTimestamp | it is being deleted, and waits for its finalizers [")
	if err := s.Patch(t.Context(), stuck, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`))); err != nil {
		t.Fatal(err)
	}
}
