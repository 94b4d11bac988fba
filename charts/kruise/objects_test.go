// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/manager"
	"github.com/regatta-sh/regatta/controllers/webhook/server"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
)

// What `helm install` makes, by the names that documents and scripts know.
func TestObjects(t *testing.T) {
	var got []string
	for _, object := range render(t) {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s/%s", object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName())))
	}
	slices.Sort(got)
	want := []string{
		"APIService /v1alpha1.decisions.kruise.io",
		"ClusterRole /aggregate-kruise-admin",
		"ClusterRole /aggregate-kruise-edit",
		"ClusterRole /aggregate-kruise-view",
		"ClusterRole /kruise-bundle-credentials",
		"ClusterRole /kruise-certs-role",
		"ClusterRole /kruise-daemon-role",
		"ClusterRole /kruise-decision-reader",
		"ClusterRole /kruise-decisions-reader",
		"ClusterRole /kruise-helm-hook",
		"ClusterRole /kruise-manager-role",
		"ClusterRole /kruise-test",
		"ClusterRoleBinding /kruise-certs-rolebinding",
		"ClusterRoleBinding /kruise-daemon-rolebinding",
		"ClusterRoleBinding /kruise-helm-hook",
		"ClusterRoleBinding /kruise-manager-rolebinding",
		"ClusterRoleBinding /kruise-test",
		"CustomResourceDefinition /advancedcronjobs.apps.kruise.io",
		"CustomResourceDefinition /broadcastjobs.apps.kruise.io",
		"CustomResourceDefinition /clonesets.apps.kruise.io",
		"CustomResourceDefinition /clusterpolicybundles.policy.kruise.io",
		"CustomResourceDefinition /containerrecreaterequests.apps.kruise.io",
		"CustomResourceDefinition /daemonsets.apps.kruise.io",
		"CustomResourceDefinition /ephemeraljobs.apps.kruise.io",
		"CustomResourceDefinition /imagelistpulljobs.apps.kruise.io",
		"CustomResourceDefinition /imagepulljobs.apps.kruise.io",
		"CustomResourceDefinition /nodeimages.apps.kruise.io",
		"CustomResourceDefinition /nodepodprobes.apps.kruise.io",
		"CustomResourceDefinition /persistentpodstates.apps.kruise.io",
		"CustomResourceDefinition /podprobemarkers.apps.kruise.io",
		"CustomResourceDefinition /podunavailablebudgets.policy.kruise.io",
		"CustomResourceDefinition /policybundles.policy.kruise.io",
		"CustomResourceDefinition /resourcedistributions.apps.kruise.io",
		"CustomResourceDefinition /sidecarsets.apps.kruise.io",
		"CustomResourceDefinition /statefulsets.apps.kruise.io",
		"CustomResourceDefinition /uniteddeployments.apps.kruise.io",
		"CustomResourceDefinition /workloadspreads.apps.kruise.io",
		"DaemonSet kruise-system/kruise-daemon",
		"Deployment kruise-system/kruise-controller-manager",
		"FlowSchema /kruise-daemon",
		"FlowSchema /kruise-leader-election",
		"FlowSchema /kruise-manager",
		"Job kruise-system/kruise-finalizer",
		"Job kruise-system/kruise-test",
		"Job kruise-system/kruise-upgrade-check",
		"MutatingWebhookConfiguration /kruise-mutating-webhook-configuration",
		"MutatingWebhookConfiguration /kruise-protection-webhook-configuration",
		"Namespace /kruise-daemon-config",
		"Namespace /kruise-system",
		"PodDisruptionBudget kruise-system/kruise-controller-manager",
		"PriorityLevelConfiguration /kruise-daemon",
		"PriorityLevelConfiguration /kruise-manager",
		"ResourceQuota kruise-system/kruise-critical-pods",
		"Role kruise-daemon-config/kruise-daemon-secret-role",
		"Role kruise-system/kruise-configuration-role",
		"Role kruise-system/kruise-leader-election-role",
		"Role kruise-system/kruise-test",
		"Role kruise-system/kruise-webhook-role",
		"RoleBinding kruise-daemon-config/kruise-daemon-secret-rolebinding",
		"RoleBinding kruise-system/kruise-bundle-credentials",
		"RoleBinding kruise-system/kruise-configuration-rolebinding",
		"RoleBinding kruise-system/kruise-leader-election-rolebinding",
		"RoleBinding kruise-system/kruise-test",
		"RoleBinding kruise-system/kruise-webhook-rolebinding",
		"RoleBinding kube-system/kruise-manager-auth-reader",
		"Secret kruise-system/kruise-webhook-certs",
		"Service kruise-system/kruise-controller-manager",
		"Service kruise-system/kruise-webhook-service",
		"ServiceAccount kruise-system/kruise-daemon",
		"ServiceAccount kruise-system/kruise-helm-hook",
		"ServiceAccount kruise-system/kruise-manager",
		"ServiceAccount kruise-system/kruise-test",
		"ServiceAccount kruise-system/kruise-upgrade-check",
		"ValidatingAdmissionPolicy /kruise-daemon-node",
		"ValidatingAdmissionPolicy /kruise-daemon-pods",
		"ValidatingAdmissionPolicy /kruise-distribution",
		"ValidatingAdmissionPolicy /kruise-restart-permits",
		"ValidatingAdmissionPolicyBinding /kruise-daemon-node",
		"ValidatingAdmissionPolicyBinding /kruise-daemon-pods",
		"ValidatingAdmissionPolicyBinding /kruise-distribution",
		"ValidatingAdmissionPolicyBinding /kruise-restart-permits",
		"ValidatingWebhookConfiguration /kruise-protection-webhook-configuration",
		"ValidatingWebhookConfiguration /kruise-validating-webhook-configuration",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestManager(t *testing.T) {
	r := render(t)
	d := deployment(t, r)
	if got := get[*corev1.Namespace](t, r, "kruise-system").Labels["control-plane"]; got != "openkruise" {
		t.Errorf("the namespace is labelled %q", got)
	}
	if *d.Spec.Replicas != 2 || d.Spec.MinReadySeconds != 3 || d.Spec.Template.Labels["control-plane"] != "controller-manager" {
		t.Errorf("replicas %d, minReadySeconds %d, labels %v", *d.Spec.Replicas, d.Spec.MinReadySeconds, d.Spec.Template.Labels)
	}
	if u := d.Spec.Strategy.RollingUpdate; u.MaxUnavailable.String() != "0" || u.MaxSurge.String() != "100%" {
		t.Errorf("the strategy is %v", u)
	}
	for key, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[key] != value {
			t.Errorf("the selector %s=%s matches no pod", key, value)
		}
	}
	c := container(t, r)
	for _, probe := range []struct {
		of   *corev1.Probe
		path string
	}{{c.ReadinessProbe, "/readyz"}, {c.LivenessProbe, "/healthz"}, {c.StartupProbe, "/healthz"}} {
		if probe.of.HTTPGet.Path != probe.path || probe.of.HTTPGet.Port.String() != "health" {
			t.Errorf("a probe asks %v, want %s", probe.of.HTTPGet, probe.path)
		}
	}
	if got := d.Spec.Template.Spec.TopologySpreadConstraints[0].TopologyKey; got != corev1.LabelTopologyZone {
		t.Errorf("replicas are spread over %s", got)
	}
	names := map[string]int32{}
	for _, port := range c.Ports {
		names[port.Name] = port.ContainerPort
	}
	for name, want := range map[string]struct{ port, target int32 }{"kruise-webhook-service": {443, 9443}, "kruise-controller-manager": {8080, 8080}} {
		service := get[*corev1.Service](t, r, name)
		port := service.Spec.Ports[0]
		if port.Port != want.port || names[port.TargetPort.StrVal] != want.target {
			t.Errorf("%s leads %d to %s=%d, want %v", name, port.Port, port.TargetPort.StrVal, names[port.TargetPort.StrVal], want)
		}
		if !cmp.Equal(service.Spec.Selector, d.Spec.Selector.MatchLabels) {
			t.Errorf("%s selects %v", name, service.Spec.Selector)
		}
	}
}

// Every pod of the chart is fit for a namespace that enforces the restricted
// level of Pod Security.
func TestPodsAreRestricted(t *testing.T) {
	for _, pod := range pods(t, render(t)) {
		if !ptr.Deref(pod.SecurityContext.RunAsNonRoot, false) || *pod.SecurityContext.RunAsUser != 65534 || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("a pod has %v", pod.SecurityContext)
		}
		context := pod.Containers[0].SecurityContext
		if ptr.Deref(context.AllowPrivilegeEscalation, true) || !ptr.Deref(context.ReadOnlyRootFilesystem, false) || !slices.Equal(context.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("a container has %v", context)
		}
		for _, volume := range pod.Volumes {
			if volume.EmptyDir == nil {
				t.Errorf("volume %s is no empty directory", volume.Name)
			}
		}
	}
}

func TestWebhooks(t *testing.T) {
	r := render(t)
	type webhook struct {
		Name, Path string
		Operations []admissionv1.OperationType
		Fail       admissionv1.FailurePolicyType
		Timeout    int32
	}
	var got []webhook
	add := func(name string, config admissionv1.WebhookClientConfig, rules []admissionv1.RuleWithOperations, fail *admissionv1.FailurePolicyType, timeout *int32, side *admissionv1.SideEffectClass, versions []string) {
		if config.CABundle != nil || config.Service.Name != "kruise-webhook-service" || *config.Service.Port != 443 {
			t.Errorf("%s calls %v", name, config)
		}
		effects := admissionv1.SideEffectClassNone
		if name == "vsidecarset.kb.io" { // it has the pods of a SidecarSet sent before that is written
			effects = admissionv1.SideEffectClassNoneOnDryRun
		}
		if *side != effects || !slices.Equal(versions, []string{"v1", "v1beta1"}) {
			t.Errorf("%s has side effects %s and versions %v", name, *side, versions)
		}
		rule := rules[0].Rule
		of := crd(t, r, rule.Resources[0]+"."+rule.APIGroups[0])
		var served []string
		for _, v := range of.Spec.Versions {
			served = append(served, v.Name)
		}
		if len(rules) != 1 || len(rule.Resources) != 1 || len(rule.APIGroups) != 1 || !slices.Equal(rule.APIVersions, served) || string(*rule.Scope) != string(of.Spec.Scope) {
			t.Errorf("%s sees %v", name, rules)
		}
		got = append(got, webhook{name, *config.Service.Path, rules[0].Operations, *fail, *timeout})
	}
	for _, w := range mutating(t, r).Webhooks {
		add(w.Name, w.ClientConfig, w.Rules, w.FailurePolicy, w.TimeoutSeconds, w.SideEffects, w.AdmissionReviewVersions)
	}
	for _, w := range validating(t, r).Webhooks {
		add(w.Name, w.ClientConfig, w.Rules, w.FailurePolicy, w.TimeoutSeconds, w.SideEffects, w.AdmissionReviewVersions)
	}
	scheme, err := manager.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	handlers, err := server.HandlersByPath(scheme, nil, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	write := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
	var want []webhook
	for path := range handlers {
		if words := strings.Split(path, "-"); len(words) == 5 { // /validate-apps-kruise-io-cloneset
			operations := write
			if path == "/validate-apps-kruise-io-nodepodprobe" { // it has no rules but for its gates, and is written with every pod
				operations = write[:1]
			}
			w := webhook{words[0][1:2] + words[4] + ".kb.io", path, operations, admissionv1.Fail, 3}
			if strings.HasSuffix(path, "policybundle") { // the manager checks them again before they take effect, and compiles them first
				w.Fail, w.Timeout = admissionv1.Ignore, 10
			}
			want = append(want, w)
		}
	}
	byName := func(a, b webhook) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(want, byName)
	slices.SortFunc(got, byName)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the chart asks for what is not served, or the other way round (-served +asked):\n%s", diff)
	}
}

// What is protected is the manager's to say: a chart that said anything of it
// would undo that with every upgrade.
func TestProtectionIsLeftToTheManager(t *testing.T) {
	output, err := helm(t, "template", "kruise", ".", "--kube-version", kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for document := range strings.SplitSeq(output, "\n---\n") {
		if !strings.Contains(document, "name: "+webhookconfig.ConfigurationName) || strings.Contains(document, "kind: ClusterRole") {
			continue
		}
		if found++; strings.Contains(document, "webhooks:") {
			t.Errorf("the chart says which webhooks there are:\n%s", document)
		}
	}
	if found != 2 {
		t.Errorf("%d objects", found)
	}
	args := container(t, render(t, "--set", "webhookConfiguration.failurePolicy.pods=Fail,webhookConfiguration.timeoutSeconds=2")).Args
	for _, want := range []string{"--pod-failure-policy=Fail", "--webhook-timeout-seconds=2"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is not among %v", want, args)
		}
	}
}

func TestWebhooksByURL(t *testing.T) {
	for _, url := range []string{"https://localhost:9443", "https://localhost:9443/"} {
		r := render(t, "--set", "webhookConfiguration.url="+url, "--set", "manager.replicas=0")
		var configs []admissionv1.WebhookClientConfig
		for _, w := range mutating(t, r).Webhooks {
			configs = append(configs, w.ClientConfig)
		}
		for _, w := range validating(t, r).Webhooks {
			configs = append(configs, w.ClientConfig)
		}
		for _, config := range configs {
			if config.Service != nil || !strings.HasPrefix(*config.URL, "https://localhost:9443/") || strings.Contains(*config.URL, ":9443//") {
				t.Errorf("a webhook is called at %v", config)
			}
		}
		config := crd(t, r, cloneSets).Spec.Conversion.Webhook.ClientConfig
		if config.Service != nil || *config.URL != "https://localhost:9443/convert" {
			t.Errorf("conversion is called at %v", config)
		}
		if !slices.Contains(container(t, r).Env, corev1.EnvVar{Name: "WEBHOOK_HOST", Value: "localhost"}) {
			t.Errorf("the environment is %v", container(t, r).Env)
		}
	}
}

func TestExternalCertificates(t *testing.T) {
	const annotation, value = "cert-manager.io/inject-ca-from", "kruise-system/kruise-webhook-certs"
	r := render(t, "--set", "featureGates=EnableExternalCerts=true", "--set-json", fmt.Sprintf("externalCerts.annotations={%q:%q}", annotation, value))
	for name, annotations := range map[string]map[string]string{
		"mutating": mutating(t, r).Annotations, "validating": validating(t, r).Annotations, "CRD": crd(t, r, cloneSets).Annotations,
	} {
		if annotations[annotation] != value {
			t.Errorf("%s has %v", name, annotations)
		}
	}
	if crd(t, r, cloneSets).Annotations["controller-gen.kubebuilder.io/version"] == "" {
		t.Error("the annotations of the CRD itself are gone")
	}
	if crd(t, r, "clusterpolicybundles.policy.kruise.io").Annotations[annotation] != "" {
		t.Error("a CRD that does not convert has them, too")
	}
	if has[*corev1.Secret](r, "kruise-webhook-certs") {
		t.Error("the manager could make certificates still")
	}
	for _, rule := range slices.Concat(get[*rbacv1.Role](t, r, "kruise-webhook-role").Rules, get[*rbacv1.ClusterRole](t, r, "kruise-certs-role").Rules) {
		if !slices.Equal(rule.Verbs, []string{"get"}) || len(rule.ResourceNames) == 0 {
			t.Errorf("it may do more than look whether they fit: %v", rule)
		}
	}
}

// The steps of each check come in the order in which each needs the
// ones before.
func TestHooks(t *testing.T) {
	var got []string
	for _, object := range render(t) {
		annotations := object.GetAnnotations()
		if annotations["helm.sh/hook"] == "" {
			continue
		}
		if annotations["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
			t.Errorf("%s has %v", object.GetName(), annotations)
		}
		got = append(got, annotations["helm.sh/hook"]+" "+annotations["helm.sh/hook-weight"]+" "+object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName())
	}
	slices.Sort(got)
	want := []string{
		"pre-delete 1 ClusterRole kruise-helm-hook", "pre-delete 2 ClusterRoleBinding kruise-helm-hook", "pre-delete 3 ServiceAccount kruise-helm-hook", "pre-delete 4 Job kruise-finalizer",
		"pre-upgrade 1 ServiceAccount kruise-upgrade-check", "pre-upgrade 2 Job kruise-upgrade-check",
		"test 1 ClusterRole kruise-test", "test 1 Role kruise-test", "test 2 ClusterRoleBinding kruise-test", "test 2 RoleBinding kruise-test", "test 3 ServiceAccount kruise-test", "test 4 Job kruise-test",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The check before an upgrade has the image and the flags of the manager that the upgrade starts.
func TestUpgradeCheck(t *testing.T) {
	r := render(t, "--set", "image.registry=mirror.example.com,helmHooks.image.repository=other.example.com/hook,manager.log.level=6,featureGates=CloneSetShortHash=true", "--set", "decisionLogs.stdout=true")
	manager, check := container(t, r), get[*batchv1.Job](t, r, "kruise-upgrade-check").Spec.Template.Spec.Containers[0]
	if diff := cmp.Diff(append([]string{"upgrade-check"}, manager.Args...), check.Args); diff != "" || check.Image != manager.Image || !slices.Contains(check.Args, "--v=6") {
		t.Errorf("image %s, want %s; flags (-want +got):\n%s", check.Image, manager.Image, diff)
	}
	loaded := render(t, "--set", "manager.imagePullPolicy=Never,manager.extraEnv[0].name=KUBERNETES_SERVICE_HOST,manager.extraEnv[0].value=api.example.com")
	if env := get[*batchv1.Job](t, loaded, "kruise-upgrade-check").Spec.Template.Spec.Containers[0].Env; !cmp.Equal(env, []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "api.example.com"}}) {
		t.Errorf("the check has the variables %v, and the manager will have others", env)
	}
	for _, job := range all[*batchv1.Job](loaded) { // a registry does not have an image that was loaded into the nodes
		if got := job.Spec.Template.Spec.Containers[0].ImagePullPolicy; got != corev1.PullNever {
			t.Errorf("%s pulls its image: %q", job.Name, got)
		}
	}
	for _, object := range r {
		if object.GetAnnotations()["helm.sh/hook"] == "pre-upgrade" && object.GetAnnotations()["argocd.argoproj.io/hook"] != "Skip" {
			t.Errorf("Argo CD would make %s before the first install", object.GetName())
		}
	}
}

// Clusters that let pods of Kubernetes' own priority classes in by quota alone have one, for the classes that are used.
func TestCriticalPodsHaveAQuota(t *testing.T) {
	quota := get[*corev1.ResourceQuota](t, render(t, "--set", "manager.priorityClassName=platform"), "kruise-critical-pods")
	if got := quota.Spec.ScopeSelector.MatchExpressions[0]; got.ScopeName != corev1.ResourceQuotaScopePriorityClass || !slices.Equal(got.Values, []string{"system-node-critical"}) {
		t.Errorf("it is for %v", got)
	}
	if r := render(t, "--set", "manager.priorityClassName=,daemon.priorityClassName="); has[*corev1.ResourceQuota](r, "kruise-critical-pods") {
		t.Error("there is a quota for no class")
	}
}

// helm test runs the command of the image that checks an installation. It may look, but not at secrets, and write only what runs nothing.
func TestHelmTest(t *testing.T) {
	r := render(t, "--set", "installation.namespace=platform", "--namespace", "releases")
	pod := get[*batchv1.Job](t, r, "kruise-test").Spec.Template.Spec
	if c := pod.Containers[0]; !slices.Equal(c.Command, []string{"/regatta"}) || c.Image != container(t, r).Image ||
		!slices.Equal(c.Args, []string{"check", "--after", "--manager-namespace=platform", "--release=kruise", "--namespace=releases"}) {
		t.Errorf("it runs %s %v %v", c.Image, c.Command, c.Args)
	}
	role := get[*rbacv1.Role](t, r, "kruise-test")
	if pod.ServiceAccountName != "kruise-test" || role.Namespace != "platform" {
		t.Errorf("it runs as %s, and the role is in %s", pod.ServiceAccountName, role.Namespace)
	}
	for _, rule := range get[*rbacv1.ClusterRole](t, r, "kruise-test").Rules {
		if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb != "get" && verb != "list" }) || slices.Contains(rule.Resources, "secrets") {
			t.Errorf("everywhere it may %v", rule)
		}
	}
	for _, rule := range role.Rules {
		writes := slices.Equal(rule.Verbs, []string{"create"}) && slices.Equal(rule.Resources, []string{"persistentpodstates", "workloadspreads"})
		if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb != "get" && verb != "list" && !writes }) || slices.Contains(rule.Resources, "secrets") {
			t.Errorf("it may %v", rule)
		}
	}
}

// Agents in a namespace of their own are looked at there.
func TestHelmTestOfAgentsInANamespaceOfTheirOwn(t *testing.T) {
	for args, want := range map[string]string{"daemon.namespace=agents": "Role agents, Role kruise-system, RoleBinding agents, RoleBinding kruise-system", "featureGates=KruiseDaemon=false,daemon.namespace=agents": "Role kruise-system, RoleBinding kruise-system"} {
		var got []string
		for _, o := range render(t, "--set", args) {
			if kind := o.GetObjectKind().GroupVersionKind().Kind; o.GetName() == "kruise-test" && o.GetAnnotations()["helm.sh/hook"] == "test" && strings.HasPrefix(kind, "Role") {
				got = append(got, kind+" "+o.GetNamespace())
			}
		}
		if slices.Sort(got); strings.Join(got, ", ") != want {
			t.Errorf("with %s there are %v, want %s", args, got, want)
		}
	}
}

// The name of a Job is a label of its pod. Helm lets a release have 53 characters, and a name that YAML takes for a number.
func TestHooksOfAReleaseWithAnOddName(t *testing.T) {
	for _, name := range []string{strings.Repeat("x", 53), strings.Repeat("x", 48) + "-y.z", "123"} {
		output, err := helm(t, "template", name, ".", "--kube-version", kubeVersion, "-s", "templates/upgrade-check.yaml", "-s", "templates/uninstall-check.yaml", "-s", "templates/test.yaml")
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		for document := range strings.SplitSeq(output, "\n---\n") {
			o, err := decode(document)
			if err != nil {
				t.Fatal(err)
			}
			if _, job := o.(*batchv1.Job); job && len(validation.IsDNS1123Label(strings.ReplaceAll(o.GetName(), ".", "-"))) > 0 {
				t.Errorf("%s is %s", o.GetName(), validation.IsDNS1123Label(o.GetName()))
			}
		}
	}
}

func TestUninstallCheck(t *testing.T) {
	r := render(t)
	job := get[*batchv1.Job](t, r, "kruise-finalizer")
	if pod := job.Spec.Template.Spec; *job.Spec.BackoffLimit != 0 || pod.RestartPolicy != corev1.RestartPolicyNever || !slices.Equal(pod.Containers[0].Args, []string{"uninstall-check"}) {
		t.Errorf("the job is %v", job.Spec)
	}
	var looks []string
	for _, r := range kinds.PodOwningResources() {
		looks = append(looks, r.Resource)
	}
	rules := get[*rbacv1.ClusterRole](t, r, "kruise-helm-hook").Rules
	if diff := cmp.Diff([]rbacv1.PolicyRule{{APIGroups: []string{"apps.kruise.io"}, Resources: looks, Verbs: []string{"list"}}}, rules); diff != "" {
		t.Errorf("what it looks for (-) and may list (+):\n%s", diff)
	}
}
