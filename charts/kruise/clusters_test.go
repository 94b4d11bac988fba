// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/nodeagent/cri"
)

const (
	enforcerKey = "admissions.enforcer/disabled"
	levelKey    = "pod-security.kubernetes.io/enforce"
	sccAPI      = "security.openshift.io/v1"
)

// clusters are the values files for clusters, by their names. Each is rendered with the APIs that such a cluster has.
func clusters() map[string]struct {
	apis []string
	want func(*testing.T, release)
} {
	return map[string]struct {
		apis []string
		want func(*testing.T, release)
	}{
		"aks": {want: func(t *testing.T, r release) {
			for _, o := range webhookConfigurations(t, r) {
				if o.GetAnnotations()[enforcerKey] != "true" {
					t.Errorf("%T %s has annotations %v", o, o.GetName(), o.GetAnnotations())
				}
			}
			if got := deployment(t, r).Spec.Template.Spec.Tolerations; len(got) != 1 || got[0].Key != "CriticalAddonsOnly" {
				t.Errorf("tolerations are %v", got)
			}
		}},
		"eks":         {want: wantOnNodes},
		"gke-private": {want: wantFirewallRule},
		"gke-autopilot": {want: func(t *testing.T, r release) {
			if len(all[*appsv1.DaemonSet](r)) > 0 {
				t.Error("the node agent is there")
			}
			wantLevels(t, r, map[string]string{"kruise-system": "restricted"})
			wantUnprivileged(t, r)
			wantGatesOff(t)
		}},
		"openshift": {apis: []string{sccAPI}, want: wantOpenShift},
		"hardened": {want: func(t *testing.T, r release) {
			wantLevels(t, r, map[string]string{"kruise-system": "restricted", "kruise-daemon": "privileged", "kruise-daemon-config": "restricted"})
			wantUnprivileged(t, r)
			wantAgentsApart(t, r, "kruise-daemon")
		}},
		"k3s": {want: func(t *testing.T, r release) {
			if got := agentPod(t, r).Volumes[0].HostPath.Path; got != "/run/k3s" {
				t.Errorf("sockets are at %s", got)
			}
			tried := cri.CandidateEndpoints("", "")
			for _, socket := range []string{"containerd/containerd.sock", "containerd.sock"} { // of K3s, and of k0s and MicroK8s
				if !slices.Contains(tried, socket) {
					t.Errorf("the agent tries %v, not %s", tried, socket)
				}
			}
		}},
		"local": {want: func(t *testing.T, r release) {
			if d := deployment(t, r); *d.Spec.Replicas != 1 || container(t, r).ImagePullPolicy != corev1.PullIfNotPresent || agentPod(t, r).Containers[0].ImagePullPolicy != corev1.PullIfNotPresent {
				t.Errorf("%d replicas, pulled %s", *d.Spec.Replicas, container(t, r).ImagePullPolicy)
			}
			if got := agentPod(t, r).Volumes[0].HostPath.Path; got != "/var/run" {
				t.Errorf("sockets are at %s", got)
			}
		}},
		"ipv6":       {want: wantFamilies(corev1.IPFamilyPolicySingleStack, corev1.IPv6Protocol)},
		"dual-stack": {want: wantFamilies(corev1.IPFamilyPolicyPreferDualStack)},
		"offline": {want: func(t *testing.T, r release) {
			for _, pod := range append(pods(t, r), agentPod(t, r)) {
				if image := pod.Containers[0].Image; !strings.HasPrefix(image, "registry.example.com:5000/regatta-sh/regatta:") || len(pod.ImagePullSecrets) != 1 {
					t.Errorf("%s is pulled with %v", image, pod.ImagePullSecrets)
				}
			}
		}},
	}
}

// Each values file renders, has what its cluster needs, and has a paragraph in CLUSTERS.md that says where it was tried.
func TestClusters(t *testing.T) {
	files, err := filepath.Glob("clusters/*")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("CLUSTERS.md")
	if err != nil {
		t.Fatal(err)
	}
	paragraphs := strings.Split(string(page), "\n## ")[1:]
	known := clusters()
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		tc, ok := known[name]
		if !ok {
			t.Errorf("no row says what %s is for", path)
			continue
		}
		delete(known, name)
		t.Run(name, func(t *testing.T) {
			about := slices.DeleteFunc(slices.Clone(paragraphs), func(p string) bool { return !strings.Contains(p, "-f charts/kruise/"+path) })
			if len(about) != 1 || !strings.Contains(about[0], "\nRun on: ") {
				t.Errorf("%d paragraphs of CLUSTERS.md install with it, want one, and that it says where that was run", len(about))
			}
			args := []string{"-f", path}
			for _, api := range tc.apis {
				args = append(args, "--api-versions", api)
			}
			tc.want(t, render(t, args...))
		})
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		t.Errorf("there is no clusters/%s.yaml", name)
	}
	for _, p := range paragraphs {
		if title, _, _ := strings.Cut(p, "\n"); !strings.Contains(p, "\nRun on: ") {
			t.Errorf("CLUSTERS.md does not say where %q was run", title)
		}
	}
}

func agentPod(t *testing.T, r release) corev1.PodSpec {
	t.Helper()
	return get[*appsv1.DaemonSet](t, r, "kruise-daemon").Spec.Template.Spec
}

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
	for _, o := range webhookConfigurations(t, render(t, "--set", `externalCerts.annotations.a=b`)) {
		if o.GetAnnotations()[enforcerKey] != "true" {
			t.Errorf("%T %s has annotations %v", o, o.GetName(), o.GetAnnotations())
		}
	}
	if got := mutating(t, render(t, "--set-json", `externalCerts.annotations={"`+enforcerKey+`":"false","a":"b"}`)).Annotations; got[enforcerKey] != "false" || got["a"] != "b" {
		t.Errorf("annotations of users are lost: %v", got)
	}
}

// wantOnNodes holds that the API server is led to ports of nodes, which no two listeners share, and that CLUSTERS.md opens.
func wantOnNodes(t *testing.T, r release) {
	t.Helper()
	pod := deployment(t, r).Spec.Template.Spec
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
		t.Errorf("hostNetwork is %t, dnsPolicy %s", pod.HostNetwork, pod.DNSPolicy)
	}
	taken := map[int32]string{10221: "the node agent", 10250: "the kubelet", 10256: "kube-proxy"}
	for _, p := range pod.Containers[0].Ports {
		if taken[p.ContainerPort] != "" {
			t.Errorf("port %d is that of %s and of %s", p.ContainerPort, taken[p.ContainerPort], p.Name)
		}
		taken[p.ContainerPort] = p.Name
	}
	wantLevels(t, r, map[string]string{"kruise-system": "privileged"})
	wantOpened(t, r, "--protocol tcp --port %d")
}

// wantFirewallRule holds that the command of CLUSTERS.md opens the ports that the API server is led to.
func wantFirewallRule(t *testing.T, r release) {
	t.Helper()
	wantOpened(t, r, "tcp:%d")
}

// wantOpened holds that CLUSTERS.md has a text for each port that the API server calls.
func wantOpened(t *testing.T, r release, text string) {
	t.Helper()
	page, err := os.ReadFile("CLUSTERS.md")
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]int32{}
	for _, p := range container(t, r).Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, name := range []string{"webhook", "decisions"} {
		if want := fmt.Sprintf(text, ports[name]); !strings.Contains(string(page), want) {
			t.Errorf("CLUSTERS.md has no %q for port %s", want, name)
		}
	}
}

// wantLevels holds what Pod Security is enforced in namespaces.
func wantLevels(t *testing.T, r release, want map[string]string) {
	t.Helper()
	for name, level := range want {
		if got := get[*corev1.Namespace](t, r, name).Labels[levelKey]; got != level {
			t.Errorf("namespace %s enforces %q, want %s", name, got, level)
		}
	}
}

// wantUnprivileged holds that the pods of the manager ask for nothing of their node.
func wantUnprivileged(t *testing.T, r release) {
	t.Helper()
	for _, pod := range pods(t, r) {
		if pod.HostNetwork || pod.HostPID || pod.HostIPC {
			t.Errorf("%s is on its node", pod.Containers[0].Name)
		}
		for _, v := range pod.Volumes {
			if v.HostPath != nil {
				t.Errorf("%s mounts %s of its node", pod.Containers[0].Name, v.HostPath.Path)
			}
		}
	}
}

// wantGatesOff holds that CLUSTERS.md names the gates that go off with the node agent.
func wantGatesOff(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile("CLUSTERS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, gate := range offWithTheAgent(t) {
		if !strings.Contains(string(page), "`"+gate+"`") {
			t.Errorf("CLUSTERS.md does not say that %s is off", gate)
		}
	}
}

// wantAgentsApart holds that whatever names the account of the node agents names their namespace.
func wantAgentsApart(t *testing.T, r release, namespace string) {
	t.Helper()
	if got := get[*appsv1.DaemonSet](t, r, "kruise-daemon").Namespace; got != namespace {
		t.Errorf("agents are in %s", got)
	}
	get[*corev1.ServiceAccount](t, r, "kruise-daemon")
	subjects := 0
	for _, o := range r {
		var all []rbacv1.Subject
		switch o := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			all = o.Subjects
		case *rbacv1.RoleBinding:
			all = o.Subjects
		case *corev1.ServiceAccount:
			if o.Name == "kruise-daemon" && o.Namespace != namespace {
				t.Errorf("the account is in %s", o.Namespace)
			}
		case *admissionv1.ValidatingAdmissionPolicy:
			for _, c := range o.Spec.MatchConditions {
				if c.Name == "node-agent" && !strings.Contains(c.Expression, "system:serviceaccount:"+namespace+":kruise-daemon'") {
					t.Errorf("%s is for %s", o.Name, c.Expression)
				}
			}
		}
		for _, s := range all {
			if s.Name == "kruise-daemon" {
				subjects++
				if s.Namespace != namespace {
					t.Errorf("%s binds an account of %s", o.GetName(), s.Namespace)
				}
			}
		}
	}
	if subjects == 0 {
		t.Error("no account is bound")
	}
	wantEnv := corev1.EnvVar{Name: "DAEMON_NAMESPACE", Value: namespace}
	if !slices.Contains(container(t, r).Env, wantEnv) {
		t.Errorf("the manager looks for agents by %v", container(t, r).Env)
	}
	quotas := map[string][]string{}
	for _, q := range all[*corev1.ResourceQuota](r) {
		quotas[q.Namespace] = q.Spec.ScopeSelector.MatchExpressions[0].Values
	}
	if !slices.Equal(quotas[namespace], []string{"system-node-critical"}) || !slices.Equal(quotas["kruise-system"], []string{"system-cluster-critical"}) {
		t.Errorf("quotas are %v", quotas)
	}
}

// wantFamilies holds what both Services say.
func wantFamilies(policy corev1.IPFamilyPolicy, families ...corev1.IPFamily) func(*testing.T, release) {
	return func(t *testing.T, r release) {
		t.Helper()
		services := all[*corev1.Service](r)
		for _, s := range services {
			if s.Spec.IPFamilyPolicy == nil || *s.Spec.IPFamilyPolicy != policy || !slices.Equal(s.Spec.IPFamilies, families) {
				t.Errorf("%s has %v %v", s.Name, s.Spec.IPFamilyPolicy, s.Spec.IPFamilies)
			}
		}
		if len(services) != 2 {
			t.Errorf("there are %d Services", len(services))
		}
		for _, arg := range slices.Concat(container(t, r).Args, agentPod(t, r).Containers[0].Args) {
			if strings.Contains(arg, "0.0.0.0") || strings.Contains(arg, "127.0.0.1") {
				t.Errorf("%s is IPv4 alone", arg)
			}
		}
	}
}

// offWithTheAgent are the gates that are on with all others and go off with that of the node agent.
func offWithTheAgent(t *testing.T) (names []string) {
	t.Helper()
	with, without := gatesOf(t, "AllAlpha=true,AllBeta=true"), gatesOf(t, "AllAlpha=true,AllBeta=true,KruiseDaemon=false")
	for gate := range with.GetAll() {
		if gate != features.KruiseDaemon && with.Enabled(gate) && !without.Enabled(gate) {
			names = append(names, string(gate))
		}
	}
	if len(names) == 0 {
		t.Fatal("no gate goes off")
	}
	slices.Sort(names)
	return names
}

func gatesOf(t *testing.T, flag string) features.Gates {
	t.Helper()
	gates, err := features.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := gates.Set(flag); err != nil {
		t.Fatal(err)
	}
	if err := gates.ResolveDependencies(""); err != nil {
		t.Fatal(err)
	}
	return gates
}
