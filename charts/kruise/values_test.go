// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/regatta-sh/regatta/engine/decision/catalog"
)

const cloneSets = "clonesets.apps.kruise.io"

// Each of these is a command that the installation page, the FAQ or a tutorial
// tells people to run, or a value that their tables name.
func TestValues(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want func(*testing.T, release)
	}{
		{name: "feature gates with escaped commas reach the manager", args: []string{"--set", `featureGates=ResourcesDeletionProtection=true\,PreDownloadImageForInPlaceUpdate=true`}, want: func(t *testing.T, r release) {
			wantArg(t, r, "--feature-gates=ResourcesDeletionProtection=true,PreDownloadImageForInPlaceUpdate=true")
		}},
		{name: "a gate that does not exist is for the manager to refuse", args: []string{"--set", "manager.resources.limits.cpu=500m", "--set", "manager.resources.limits.memory=1Gi", "--set", "featureGates=UnusedFeature=false"}, want: func(t *testing.T, r release) {
			limits := container(t, r).Resources.Limits
			if limits.Cpu().String() != "500m" || limits.Memory().String() != "1Gi" {
				t.Errorf("limits are %v", limits)
			}
		}},
		{name: "no gates are no flag", want: func(t *testing.T, r release) {
			if args := strings.Join(container(t, r).Args, " "); strings.Contains(args, "feature-gates") || strings.Contains(args, "logging-format") {
				t.Errorf("args are %s", args)
			}
		}},
		{name: "all alpha gates leave making certificates to the manager", args: []string{"--set", "featureGates=AllAlpha=true"}, want: func(t *testing.T, r release) {
			wantArg(t, r, "--feature-gates=AllAlpha=true,EnableExternalCerts=false")
			if !has[*corev1.Secret](r, "kruise-webhook-certs") || !has[*rbacv1.ClusterRole](r, "kruise-certs-role") {
				t.Error("the secret or the role is missing")
			}
		}},
		{name: "all alpha gates and external certificates, if that is said", args: []string{"--set", `featureGates=AllAlpha=true\,EnableExternalCerts=true`}, want: func(t *testing.T, r release) {
			wantArg(t, r, "--feature-gates=AllAlpha=true,EnableExternalCerts=true")
			if has[*corev1.Secret](r, "kruise-webhook-certs") {
				t.Error("there is a secret")
			}
		}},
		{name: "an image from a mirror", args: []string{"--set", "image.registry=registry.cn-shanghai.example.com:5000/mirror"}, want: wantImages(
			"registry.cn-shanghai.example.com:5000/mirror/regatta-sh/regatta:0.1.0", "registry.cn-shanghai.example.com:5000/mirror/regatta-sh/regatta:0.1.0")},
		{name: "an image of one's own, beside a mirror", args: []string{"--set", "image.registry=mirror.example.com,daemon.image.repository=private.example.com/kruise-daemon,manager.image.tag=dev"}, want: wantImages(
			"mirror.example.com/regatta-sh/regatta:dev", "mirror.example.com/regatta-sh/regatta:dev")},
		{name: "an image by its digest", args: []string{"--set", "manager.image.tag=sha256:" + strings.Repeat("a", 64)}, want: wantImages(
			own+"@sha256:"+strings.Repeat("a", 64), own+"@sha256:"+strings.Repeat("a", 64))},
		{name: "an image of the hook", args: []string{"--set", "helmHooks.image.repository=private.example.com/hook", "--set", "helmHooks.image.tag=v0.1.0"}, want: wantImages(
			own+":0.1.0", "private.example.com/hook:v0.1.0")},
		{name: "an installation without the internet", args: []string{
			"--set", "manager.image.repository=private-registry.com/kruise-manager",
			"--set", "daemon.image.repository=private-registry.com/kruise-daemon",
			"--set", "imagePullSecrets[0].name=private-registry-secret",
		}, want: func(t *testing.T, r release) {
			for _, pod := range pods(t, r) {
				if len(pod.ImagePullSecrets) != 1 || pod.ImagePullSecrets[0].Name != "private-registry-secret" {
					t.Errorf("pull secrets are %v", pod.ImagePullSecrets)
				}
			}
		}},
		{name: "the network of the host, whose ports leave no room for both", args: []string{"--set", "manager.hostNetwork=true"}, want: func(t *testing.T, r release) {
			d := deployment(t, r)
			if pod := d.Spec.Template.Spec; !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
				t.Errorf("hostNetwork is %t, dnsPolicy %s", pod.HostNetwork, pod.DNSPolicy)
			}
			if got := d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue(); got != 1 {
				t.Errorf("maxUnavailable is %d", got)
			}
		}},
		{name: "another namespace, which exists", args: []string{"--set", "installation.namespace=platform", "--set", "installation.createNamespace=false"}, want: func(t *testing.T, r release) {
			if has[*corev1.Namespace](r, "platform") {
				t.Error("the namespace is made")
			}
			for _, object := range r {
				if ns := object.GetNamespace(); ns != "" && ns != "platform" && ns != "kruise-daemon-config" && object.GetName() != "kruise-manager-auth-reader" {
					t.Errorf("%T %s is in %s", object, object.GetName(), ns)
				}
			}
			for _, binding := range all[*rbacv1.ClusterRoleBinding](r) {
				if binding.Subjects[0].Namespace != "platform" {
					t.Errorf("%s binds %v", binding.Name, binding.Subjects[0])
				}
			}
			wantArg(t, r, "--leader-election-namespace=platform")
			if service := validating(t, r).Webhooks[0].ClientConfig.Service; service.Namespace != "platform" {
				t.Errorf("webhooks call %v", service)
			}
		}},
		{name: "no CRDs", args: []string{"--set", "crds.managed=false"}, want: func(t *testing.T, r release) {
			if crds := all[*apiextensionsv1.CustomResourceDefinition](r); len(crds) != 0 {
				t.Errorf("there are %d", len(crds))
			}
		}},
		{name: "the values file of the introduction", args: []string{"-f", "testdata/introduction.yaml"}, want: func(t *testing.T, r release) {
			pod := deployment(t, r).Spec.Template.Spec
			terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			if len(terms) != 1 || len(terms[0].MatchExpressions[0].Values) != 3 {
				t.Errorf("node affinity is %v", terms)
			}
			if len(pod.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
				t.Error("an empty podAntiAffinity replaced the built-in one")
			}
			if len(pod.Tolerations) != 1 || pod.Tolerations[0].Operator != corev1.TolerationOpExists {
				t.Errorf("tolerations are %v", pod.Tolerations)
			}
			if got := pod.Containers[0].Resources.Limits.Memory().String(); got != "1Gi" {
				t.Errorf("memory limit is %s", got)
			}
		}},
		{name: "a podAntiAffinity of one's own", args: []string{"--set-json", `manager.podAntiAffinity={"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname"}]}`}, want: func(t *testing.T, r release) {
			affinity := deployment(t, r).Spec.Template.Spec.Affinity.PodAntiAffinity
			if len(affinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 || len(affinity.PreferredDuringSchedulingIgnoredDuringExecution) != 0 {
				t.Errorf("it is %v", affinity)
			}
		}},
		{name: "numbers as numbers", args: []string{"--set", "manager.log.level=5,manager.resyncPeriod=0,manager.webhook.port=9876,manager.replicas=3,webhookConfiguration.timeoutSeconds=10"}, want: numbers},
		{name: "numbers as strings", args: []string{"--set-string", "manager.log.level=5,manager.resyncPeriod=0,manager.webhook.port=9876,manager.replicas=3,webhookConfiguration.timeoutSeconds=10"}, want: numbers},
		{name: "JSON logs", args: []string{"--set", "manager.loggingFormat=json"}, want: func(t *testing.T, r release) {
			wantArg(t, r, "--logging-format=json")
		}},
		{name: "the mutation detector", args: []string{"--set", "enableKubeCacheMutationDetector=true"}, want: func(t *testing.T, r release) {
			if !slices.ContainsFunc(container(t, r).Env, func(e corev1.EnvVar) bool { return e.Name == "KUBE_CACHE_MUTATION_DETECTOR" && e.Value == "true" }) {
				t.Errorf("the environment is %v", container(t, r).Env)
			}
		}},
		{name: "no profiles", args: []string{"--set", "manager.pprofAddr="}, want: func(t *testing.T, r release) {
			wantArg(t, r, "--enable-pprof=false")
		}},
		{name: "decisions to everywhere", args: decisionsToEverywhere(), want: func(t *testing.T, r release) {
			for _, arg := range []string{
				"--decision-log-stdout", "--decision-log-file=/log/decisions.log", "--decision-log-file-max-size=7", "--decision-log-file-keep=2",
				"--decision-log-url=https://logs.example.com/logs?a=b", `--decision-log-header="X-Tenant=a, b"`, "--decision-log-interval=1m",
				"--decision-log-token-file=/decision-logs/token", "--decision-log-ca-file=/decision-logs-ca/ca.crt", "--decision-log-mask=/input/**/owner", "--decision-log-points=rollout/plan,protection/budget",
			} {
				wantArg(t, r, arg)
			}
			volumes := deployment(t, r).Spec.Template.Spec.Volumes
			if i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == "decision-logs" }); i < 0 || volumes[i].Secret.SecretName != "opa-token" {
				t.Errorf("volumes are %v", volumes)
			}
			if v := mounted(t, r, "/decision-logs-ca"); v.ConfigMap == nil || v.ConfigMap.Name != "trust" || v.ConfigMap.Items[0] != (corev1.KeyToPath{Key: "root.pem", Path: "ca.crt"}) {
				t.Errorf("the CA is in %+v", v)
			}
		}},
		{name: "a CA in a secret", args: []string{"--set", "decisionLogs.http.url=https://logs.example.com,decisionLogs.http.ca.secret=logs-tls"}, want: func(t *testing.T, r release) {
			wantArg(t, r, "--decision-log-ca-file=/decision-logs-ca/ca.crt")
			if v := mounted(t, r, "/decision-logs-ca"); v.Secret == nil || v.Secret.SecretName != "logs-tls" || v.Secret.Items[0].Key != "ca.crt" {
				t.Errorf("the CA is in %+v", v)
			}
		}},
		{name: "clients of the webhooks that are verified", args: verified(), want: func(t *testing.T, r release) {
			for _, arg := range []string{"--webhook-client-ca-file=/webhook-client-ca/ca.crt", "--webhook-client-names=front-proxy-client", "--webhook-client-names=kube-apiserver"} {
				wantArg(t, r, arg)
			}
			if v := mounted(t, r, "/webhook-client-ca"); v.ConfigMap == nil || v.ConfigMap.Name != "front-proxy" || v.ConfigMap.Items[0] != (corev1.KeyToPath{Key: "root.pem", Path: "ca.crt"}) {
				t.Errorf("the CA is in %+v", v)
			}
		}},
		{name: "a CA of clients in a secret", args: []string{"--set", "webhookConfiguration.clientCA.secret=front-proxy"}, want: func(t *testing.T, r release) {
			if v := mounted(t, r, "/webhook-client-ca"); v.Secret == nil || v.Secret.SecretName != "front-proxy" || v.Secret.Items[0].Key != "ca.crt" {
				t.Errorf("the CA is in %+v", v)
			}
		}},
		{name: "clients of the webhooks that are not verified", want: func(t *testing.T, r release) {
			if args := strings.Join(container(t, r).Args, " "); strings.Contains(args, "webhook-client") || len(all[*networkingv1.NetworkPolicy](r)) != 0 {
				t.Errorf("args are %s", args)
			}
		}},
		{name: "a network policy", args: restricted(), want: func(t *testing.T, r release) {
			spec := get[*networkingv1.NetworkPolicy](t, r, "kruise-controller-manager").Spec
			if d := deployment(t, r); !maps.Equal(spec.PodSelector.MatchLabels, d.Spec.Selector.MatchLabels) {
				t.Errorf("it selects %v", spec.PodSelector)
			}
			if !slices.Equal(spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
				t.Errorf("it is about %v", spec.PolicyTypes)
			}
			from := map[string]int{}
			for _, rule := range spec.Ingress {
				for _, port := range rule.Ports {
					from[port.Port.String()] = len(rule.From)
				}
			}
			want := map[string]int{}
			for _, port := range container(t, r).Ports {
				want[port.Name] = 0
			}
			want["webhook"] = 2
			if diff := cmp.Diff(want, from); diff != "" {
				t.Errorf("sources by port (-want +got):\n%s", diff)
			}
			if peers := spec.Ingress[0].From; peers[0].IPBlock.CIDR != "10.0.0.10/32" || peers[1].PodSelector.MatchLabels["k8s-app"] != "konnectivity-agent" {
				t.Errorf("it lets in %v", peers)
			}
		}},
		{name: "decisions that are not masked", args: []string{"--set", "decisionLogs.stdout=true,decisionLogs.unmasked=true"}, want: func(t *testing.T, r release) {
			wantArg(t, r, "--decision-log-unmasked")
		}},
		{name: "no CPU limit", args: []string{"--set", "manager.resources.limits.cpu=null"}, want: func(t *testing.T, r release) {
			if limits := container(t, r).Resources.Limits; len(limits) != 1 {
				t.Errorf("limits are %v", limits)
			}
		}},
		{name: "one replica has no budget, which would keep its node from being drained", args: []string{"--set", "manager.replicas=1"}, want: func(t *testing.T, r release) {
			if len(all[*policyv1.PodDisruptionBudget](r)) != 0 {
				t.Error("there is one")
			}
		}},
		{name: "annotations of the service account", args: []string{"--set", `serviceAccount.annotations.eks\.amazonaws\.com/role-arn=arn:aws:iam::1:role/kruise`}, want: func(t *testing.T, r release) {
			if got := get[*corev1.ServiceAccount](t, r, "kruise-manager").Annotations["eks.amazonaws.com/role-arn"]; got == "" {
				t.Error("there are none")
			}
		}},
		{name: "everything that a values file can leave empty", args: []string{"-f", "testdata/empty.yaml"}, want: wantImages(own+":0.1.0", own+":0.1.0")},
		{name: "values of the node agent", args: []string{"-f", "testdata/daemon.yaml"}, want: func(t *testing.T, r release) {
			wantImages(own+":0.1.0", own+":0.1.0")(t, r)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.want(t, render(t, tc.args...))
		})
	}
}

func numbers(t *testing.T, r release) {
	t.Helper()
	wantArg(t, r, "--v=5")
	wantArg(t, r, "--sync-period=0")
	d := deployment(t, r)
	if *d.Spec.Replicas != 3 || d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort != 9876 {
		t.Errorf("replicas %d, ports %v", *d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Ports)
	}
	if got := *mutating(t, r).Webhooks[0].TimeoutSeconds; got != 10 {
		t.Errorf("timeout is %d", got)
	}
}

func wantArg(t *testing.T, r release, arg string) {
	t.Helper()
	if args := container(t, r).Args; !slices.Contains(args, arg) {
		t.Errorf("args are %q, want %s", args, arg)
	}
}

// pods are those of the manager and of the hook.
func pods(t *testing.T, r release) []corev1.PodSpec {
	t.Helper()
	hook := get[*batchv1.Job](t, r, "kruise-finalizer")
	return []corev1.PodSpec{deployment(t, r).Spec.Template.Spec, hook.Spec.Template.Spec}
}

// own is the image of the chart, without its tag.
const own = "ghcr.io/regatta-sh/regatta"

func wantImages(want ...string) func(*testing.T, release) {
	return func(t *testing.T, r release) {
		t.Helper()
		for i, pod := range pods(t, r) {
			if pod.Containers[0].Image != want[i] {
				t.Errorf("image is %s, want %s", pod.Containers[0].Image, want[i])
			}
		}
	}
}

func TestEveryDecisionPointMayBeLogged(t *testing.T) {
	var names []string
	for _, p := range catalog.All() {
		names = append(names, string(p.Name))
	}
	if output, err := helm(t, "template", "kruise", ".", "--kube-version", kubeVersion, "--set", "decisionLogs.points={"+strings.Join(names, ",")+"}"); err != nil {
		t.Errorf("values.schema.json does not list all points: %s", output)
	}
}

// mounted is the volume of the manager that is mounted at a path.
func mounted(t *testing.T, r release, path string) corev1.Volume {
	t.Helper()
	mounts := container(t, r).VolumeMounts
	i := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == path })
	if i < 0 {
		t.Fatalf("nothing is mounted at %s", path)
	}
	volumes := deployment(t, r).Spec.Template.Spec.Volumes
	return volumes[slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == mounts[i].Name })]
}

func verified() []string {
	return []string{"--set-json", `webhookConfiguration={"timeoutSeconds":3,"clientCA":{"configMap":"front-proxy","key":"root.pem"},"clientNames":["front-proxy-client","kube-apiserver"]}`}
}

func restricted() []string {
	return []string{"--set-json", `networkPolicy={"enabled":true,"apiServers":[{"ipBlock":{"cidr":"10.0.0.10/32"}},
		{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}},"podSelector":{"matchLabels":{"k8s-app":"konnectivity-agent"}}}]}`}
}

func decisionsToEverywhere() []string {
	return []string{"--set-json", `decisionLogs={"stdout":true,"file":{"path":"/log/decisions.log","maxSizeMiB":7,"keep":2},
		"http":{"url":"https://logs.example.com/logs?a=b","tokenSecret":"opa-token","ca":{"configMap":"trust","key":"root.pem"},"headers":{"X-Tenant":"a, b"},"interval":"1m"},
		"mask":["/input/**/owner"],"points":["rollout/plan","protection/budget"]}`}
}
