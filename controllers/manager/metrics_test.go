// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/pem"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/regatta-sh/regatta/controllers/explain"
	webhookpod "github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// noted is a registry that knows the names and the labels of all metrics that are registered with it, whether they have values or not.
type noted struct {
	metrics.RegistererGatherer
	metrics    map[string][]string
	collectors map[string]prometheus.Collector
}

var metricName = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

func (n noted) Register(c prometheus.Collector) error {
	if err := n.RegistererGatherer.Register(c); err != nil {
		return err
	}
	descriptions := make(chan *prometheus.Desc)
	go func() { c.Describe(descriptions); close(descriptions) }()
	for d := range descriptions {
		found := metricName.FindStringSubmatch(d.String())
		n.metrics[found[1]] = strings.FieldsFunc(found[2], func(r rune) bool { return r == ',' })
		n.collectors[found[1]] = c
	}
	return nil
}

// listRegisteredMetrics is what a manager registers, without an API server.
func listRegisteredMetrics(t *testing.T) noted {
	t.Helper()
	registry := noted{prometheus.NewRegistry(), map[string][]string{}, map[string]prometheus.Collector{}}
	before := metrics.Registry
	metrics.Registry = registry
	t.Cleanup(func() { metrics.Registry = before })
	o, _ := newOptions(t, "--enable-leader-election=false", "--metrics-addr=0", "--health-probe-addr=0", "--enable-pprof=false", "--protection-log-path="+t.TempDir())
	var err error
	if o.webhooks, err = readEnv(func(string) string { return "" }); err != nil {
		t.Fatal(err)
	}
	if err := o.Gates.ResolveDependencies(""); err != nil {
		t.Fatal(err)
	}
	nowhere := &rest.Config{Host: "http://127.0.0.1:1"}
	events := newPolicyEvents()
	host, err := o.policyHost(nowhere, events)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(host.Close)
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	o.WebhookClientCAFile = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(o.WebhookClientCAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	clients, err := o.measuredClients()
	if err != nil {
		t.Fatal(err)
	}
	settings := o.managerOptions(scheme, clients, &lateRecorder{})
	settings.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		return testrestmapper.TestOnlyStaticRESTMapper(scheme), nil
	}
	mgr, err := ctrl.NewManager(nowhere, settings)
	if err != nil {
		t.Fatal(err)
	}
	p := components{Options: o, mgr: mgr, host: host, events: events, rounds: explain.NewStore()}
	if err := p.registerMetrics(); err != nil {
		t.Fatal(err)
	}
	if p.guards, err = p.newConfigController(webhookpod.Steps{}); err != nil {
		t.Fatal(err)
	}
	if err := addLeaderGauge(mgr); err != nil {
		t.Fatal(err)
	}
	if _, err := p.newMissedFinder(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := registry.Register(recovery.PanicCollector()); err != nil { // SetUpProcess does, once
		t.Fatal(err)
	}
	return registry
}

// A metric that a page of the repository names is one that the manager registers, by that name.
func TestMetricsThatPagesNameAreRegistered(t *testing.T) {
	registered := listRegisteredMetrics(t).metrics
	// Those of ours, and those of OpenKruise, whose labels follow.
	named := regexp.MustCompile("`((?:regatta|kruise|cloneset)_[a-z_]+|[a-z]+(?:_[a-z]+)+\\{[a-z_,]+\\}|[a-z]+_unavailable_budget|[a-z]+_deletion_protection)[`{]")
	found := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "kubestatemetrics" { // its pages name what kube-state-metrics measures
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			name, _, _ := strings.Cut(m[1], "{")
			found[name] = true
			if _, ok := registered[name]; !ok {
				t.Errorf("%s names the metric %s, which the manager does not register", path, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 12 || !found["cloneset_scale_expectation_leakage"] || !found["namespace_deletion_protection"] || !found["regatta_panics_total"] {
		t.Errorf("the pages name %v", found)
	}
}

// CloneSets alone are in the metric of OpenKruise that counts how often the cache stays behind.
func TestCloneSetsWhoseCacheStaysBehindAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	leaks, err := registerLeaks(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"StatefulSet", "DaemonSet", "SidecarSet"} {
		if got := leaks.countLeaksOf(kind); len(got) != 0 {
			t.Errorf("a %s is counted", kind)
		}
	}
	if len(leaks.countLeaksOf("CloneSet")) != 1 {
		t.Fatal("a CloneSet is not counted")
	}
	leaks.addLeak("shop", "web")
	leaks.addLeak("shop", "web")
	want := `# HELP cloneset_scale_expectation_leakage Times that a CloneSet did not go on since the cache has not shown its writes of pods within --expectation-timeout.
# TYPE cloneset_scale_expectation_leakage counter
cloneset_scale_expectation_leakage{name="web",namespace="shop"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if _, err := registerLeaks(registry); err == nil {
		t.Error("the metric is registered twice")
	}
}
