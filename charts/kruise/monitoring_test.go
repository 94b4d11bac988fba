// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// monitor is what a ServiceMonitor and a PodMonitor say.
type monitor struct {
	NamespaceSelector   struct{ MatchNames []string }
	Selector            metav1.LabelSelector
	Endpoints           []scraped
	PodMetricsEndpoints []scraped
}

// scraped is a port of a monitor.
type scraped struct {
	Port, Path, Scheme, Interval string
	HonorLabels                  bool
	Relabelings                  []map[string]any
}

// ofOperator returns an object of the Prometheus operator.
func ofOperator(t *testing.T, r release, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range all[*unstructured.Unstructured](r) {
		if object.GetKind() == kind {
			return object
		}
	}
	t.Fatalf("there is no %s", kind)
	return nil
}

// selector returns the spec of a monitor and what it selects by. A field that the test does not know fails it.
func selector(t *testing.T, r release, kind string) (monitor, labels.Selector) {
	t.Helper()
	var m monitor
	spec, err := yaml.Marshal(ofOperator(t, r, kind).Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(spec, &m); err != nil {
		t.Fatal(err)
	}
	s, err := metav1.LabelSelectorAsSelector(&m.Selector)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

func TestMonitorsFindWhatServesMetrics(t *testing.T) {
	for _, namespaces := range [][2]string{{"kruise-system", "kruise-system"}, {"platform", "agents"}} {
		r := render(t, "--set", "metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true",
			"--set", "installation.namespace="+namespaces[0], "--set", "daemon.namespace="+namespaces[1], "--set", "manager.metrics.port=18080")
		managers, selects := selector(t, r, "ServiceMonitor")
		var found []string
		for _, s := range all[*corev1.Service](r) {
			if !selects.Matches(labels.Set(s.Labels)) {
				continue
			}
			found = append(found, s.Namespace+"/"+s.Name)
			if len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Name != managers.Endpoints[0].Port || !hasPort(container(t, r), s.Spec.Ports[0].TargetPort.StrVal, 18080) {
				t.Errorf("the ports of %s are %v", s.Name, s.Spec.Ports)
			}
		}
		if diff := cmp.Diff([]string{namespaces[0] + "/kruise-controller-manager"}, found); diff != "" {
			t.Errorf("the ServiceMonitor finds other Services: %s", diff)
		}
		agents, selects := selector(t, r, "PodMonitor")
		daemon := get[*appsv1.DaemonSet](t, r, "kruise-daemon")
		if !selects.Matches(labels.Set(daemon.Spec.Template.Labels)) || selects.Matches(labels.Set(deployment(t, r).Spec.Template.Labels)) {
			t.Errorf("the PodMonitor selects %s", selects)
		}
		if !hasPort(daemon.Spec.Template.Spec.Containers[0], agents.PodMetricsEndpoints[0].Port, 10221) {
			t.Errorf("the agent has no port %s", agents.PodMetricsEndpoints[0].Port)
		}
		if diff := cmp.Diff([][]string{{namespaces[0]}, {namespaces[1]}}, [][]string{managers.NamespaceSelector.MatchNames, agents.NamespaceSelector.MatchNames}); diff != "" {
			t.Errorf("the monitors look elsewhere: %s", diff)
		}
		// Labels of metrics, such as the namespace of a bundle, are not replaced by those of the target.
		for _, e := range slices.Concat(managers.Endpoints, agents.PodMetricsEndpoints) {
			if e.Scheme != "http" || e.Path != "/metrics" || !e.HonorLabels {
				t.Errorf("a port is scraped as %+v", e)
			}
		}
	}
}

func hasPort(c corev1.Container, name string, number int32) bool {
	return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name && p.ContainerPort == number })
}

// Prometheus may find what it scrapes, in the namespaces that have it, and no more.
func TestPrometheusMayFindManagersAndAgents(t *testing.T) {
	r := render(t, "--set", "metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true,daemon.namespace=agents",
		"--set", "metrics.prometheus.serviceAccount.name=prometheus-k8s,metrics.prometheus.serviceAccount.namespace=monitoring")
	var found []string
	for _, role := range all[*rbacv1.Role](r) {
		if role.Name != "kruise-prometheus" {
			continue
		}
		found = append(found, role.Namespace)
		for _, rule := range role.Rules {
			if !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) || slices.Contains(rule.Resources, "secrets") {
				t.Errorf("Prometheus may %v", rule)
			}
		}
	}
	for _, binding := range all[*rbacv1.RoleBinding](r) {
		if binding.Name == "kruise-prometheus" && (binding.RoleRef.Name != binding.Name || !slices.Contains(found, binding.Namespace) ||
			!slices.Equal(binding.Subjects, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "prometheus-k8s", Namespace: "monitoring"}})) {
			t.Errorf("the binding is %v", binding)
		}
	}
	slices.Sort(found)
	if diff := cmp.Diff([]string{"agents", "kruise-system"}, found); diff != "" {
		t.Error(diff)
	}
	if r := render(t, "--set", "metrics.serviceMonitor.enabled=true"); has[*rbacv1.Role](r, "kruise-prometheus") {
		t.Error("there is a Role for no Prometheus")
	}
}

// The PrometheusRule has the alerts of the file as they are, but for those that are left out.
func TestAlertsOfTheRelease(t *testing.T) {
	data, err := os.ReadFile("files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	// As --api-versions tells Helm that the operator is there.
	r := render(t, "--set", "metrics.prometheusRule.enabled=true", "--api-versions", "apiregistration.k8s.io/v1", "--api-versions", "monitoring.coreos.com/v1")
	if diff := cmp.Diff(want, ofOperator(t, r, "PrometheusRule").Object["spec"]); diff != "" {
		t.Error(diff)
	}
	groups := want["groups"].([]any)
	without := `["RegattaNoLeader"`
	for _, rule := range groups[1].(map[string]any)["rules"].([]any) {
		without += `,"` + rule.(map[string]any)["alert"].(string) + `"`
	}
	first := groups[0].(map[string]any)
	first["rules"] = first["rules"].([]any)[1:]
	want["groups"] = slices.Delete(groups, 1, 2)
	r = render(t, "--set", "metrics.prometheusRule.enabled=true", "--set-json", "metrics.prometheusRule.without="+without+"]")
	if diff := cmp.Diff(want, ofOperator(t, r, "PrometheusRule").Object["spec"]); diff != "" {
		t.Errorf("without an alert and a group: %s", diff)
	}
}

func TestDashboardsOfTheRelease(t *testing.T) {
	files, err := filepath.Glob("files/dashboards/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("there are %d dashboards, %v", len(files), err)
	}
	want, got := map[string]string{}, map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want[filepath.Base(file)] = string(text)
	}
	for _, c := range all[*corev1.ConfigMap](render(t, "--set", "metrics.grafanaDashboards.enabled=true")) {
		if c.Labels["grafana_dashboard"] != "1" {
			continue
		}
		for name, text := range c.Data {
			got[name] = text + "\n"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
