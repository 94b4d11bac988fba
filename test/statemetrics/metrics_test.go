// SPDX-License-Identifier: Apache-2.0

// Package statemetrics tests the settings for kube-state-metrics with kube-state-metrics itself.
package statemetrics

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kube-state-metrics/v2/pkg/customresourcestate"
)

var update = flag.Bool("update", false, "write the series into testdata")

// readSettings reads the settings as kube-state-metrics does, and refuses fields that it does not know.
func readSettings(t *testing.T) map[schema.GroupVersionKind]customresourcestate.Resource {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "integrations", "kubestatemetrics", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		RBAC                yaml.Node `yaml:"rbac"`
		CustomResourceState struct {
			Enabled bool
			Config  struct {
				Kind                        string
				customresourcestate.Metrics `yaml:",inline"`
			}
		} `yaml:"customResourceState"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&values); err != nil {
		t.Fatal(err)
	}
	out := map[schema.GroupVersionKind]customresourcestate.Resource{}
	for _, r := range values.CustomResourceState.Config.Spec.Resources {
		for i := range r.Metrics { // what kube-state-metrics does before it uses them
			r.Metrics[i].Each.Type = typeOf(r.Metrics[i].Each.Type)
		}
		out[schema.GroupVersionKind(r.GroupVersionKind)] = r
	}
	return out
}

// typeOf writes the name of a type in lower case.
func typeOf[T ~string](name T) T { return T(strings.ToLower(string(name))) }

// readObjects reads objects as a cluster had them.
func readObjects(t *testing.T) (out []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "objects.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

// listSeries returns the series that kube-state-metrics makes of an object, by the names of metrics.
func listSeries(t *testing.T, r customresourcestate.Resource, o *unstructured.Unstructured) map[string][]string {
	t.Helper()
	factory, err := customresourcestate.NewCustomResourceMetrics(r)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, g := range factory.MetricFamilyGenerators() {
		text := strings.TrimSpace(string(g.Generate(o).ByteSlice()))
		out[g.Name] = nil
		if text != "" {
			out[g.Name] = strings.Split(text, "\n")
		}
	}
	return out
}

func TestSeriesOfRealObjects(t *testing.T) {
	settings := readSettings(t)
	var text strings.Builder
	seen := map[string]bool{}
	for _, o := range readObjects(t) {
		gvk := o.GroupVersionKind()
		r, ok := settings[gvk]
		if !ok {
			t.Errorf("there are no settings for %s", gvk)
			continue
		}
		seen[gvk.Kind] = true
		fmt.Fprintf(&text, "# %s %s\n", gvk.Kind, o.GetName())
		series := listSeries(t, r, o)
		for _, m := range r.Metrics {
			for _, line := range series[*r.MetricNamePrefix+"_"+m.Name] {
				common := fmt.Sprintf(`customresource_group=%q,customresource_kind=%q,customresource_version=%q`, gvk.Group, gvk.Kind, gvk.Version)
				before, after, found := strings.Cut(line, common)
				if !found {
					t.Errorf("%s is without the labels of its kind", line)
				}
				if rest, more := strings.CutPrefix(after, ","); more {
					after = rest
				} else {
					before = strings.TrimSuffix(before, ",")
				}
				fmt.Fprintln(&text, before+after)
			}
		}
		findDuplicates(t, series)
	}
	for gvk := range settings {
		if !seen[gvk.Kind] {
			t.Errorf("there is no %s among the objects", gvk.Kind)
		}
	}
	golden := filepath.Join("testdata", "series.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, expected := strings.Split(text.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(expected)) {
		if i >= len(got) || i >= len(expected) || got[i] != expected[i] {
			t.Fatalf("line %d of %s differs; look at it with -update and git diff", i+1, golden)
		}
	}
}

// findDuplicates fails where two series have the same labels: Prometheus drops one of them.
func findDuplicates(t *testing.T, series map[string][]string) {
	t.Helper()
	for name, lines := range series {
		labels := map[string]bool{}
		for _, line := range lines {
			key, _, _ := strings.Cut(line, "} ")
			if labels[key] {
				t.Errorf("%s is there twice: %s", name, line)
			}
			labels[key] = true
		}
	}
}

// An object that its controller has not seen yet has counts of zero, and no series of texts.
func TestSeriesOfAnObjectWithoutStatus(t *testing.T) {
	settings := readSettings(t)
	for gvk, r := range settings {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "new", "creationTimestamp": "2026-01-02T03:04:05Z", "generation": int64(1)}, "spec": map[string]any{}}}
		o.SetGroupVersionKind(gvk)
		for name, lines := range listSeries(t, r, o) {
			isCount := slices.ContainsFunc(r.Metrics, func(g customresourcestate.Generator) bool {
				return *r.MetricNamePrefix+"_"+g.Name == name && g.Each.Gauge != nil && g.Each.Gauge.NilIsZero
			})
			switch {
			case strings.HasSuffix(name, "_created"):
				if len(lines) != 1 || !strings.HasSuffix(lines[0], "} 1.767323045e+09") {
					t.Errorf("%s: %v", name, lines)
				}
			case strings.HasSuffix(name, "metadata_generation"):
				if len(lines) != 1 || !strings.HasSuffix(lines[0], "} 1") {
					t.Errorf("%s: %v", name, lines)
				}
			case isCount && (len(lines) != 1 || !strings.HasSuffix(lines[0], "} 0")), !isCount && len(lines) > 0:
				t.Errorf("%s: %v", name, lines)
			}
		}
	}
}

// Dashboards that were made for kruise-state-metrics query these.
var kruiseStateMetrics = map[string]string{
	"CloneSet": `created status_replicas status_replicas_available status_replicas_updated status_replicas_ready status_replicas_updated_ready status_observed_generation
		status_condition spec_replicas spec_strategy_rollingupdate_max_unavailable spec_strategy_rollingupdate_max_surge spec_strategy_partition spec_metadata_generation strategy_type labels`,
	"StatefulSet": `created status_replicas status_replicas_available status_replicas_current status_replicas_ready status_replicas_updated status_observed_generation status_condition
		status_current_revision status_update_revision metadata_generation spec_replicas spec_strategy_rollingupdate_max_unavailable spec_reserveordinals spec_strategy_type labels`,
	"DaemonSet": `created status_condition spec_strategy_rollingupdate_max_surge spec_strategy_partition spec_strategy_type status_current_number_scheduled status_desired_number_scheduled
		status_number_available status_number_misscheduled status_number_ready status_number_unavailable status_observed_generation status_updated_number_scheduled metadata_generation labels`,
	"SidecarSet": `created status_replicas_matched status_replicas_updated status_replicas_ready status_replicas_updated_ready status_observed_generation
		spec_strategy_rollingupdate_max_unavailable spec_strategy_partition spec_strategy_type spec_metadata_generation spec_containers_injectpolicy spec_containers_strategy_type
		spec_containers_strategy_hotupgradeemptyimage spec_containers_volumepolicy labels`,
	"BroadcastJob": `created metadata_generation status_active status_succeeded status_failed status_desired status_condition status_spec_parallelism
		spec_strategy_activedeadline_seconds spec_strategy_ttl_seconds spec_strategy_type labels`,
	"WorkloadSpread": `created status_subset_replicas status_subset_replicas_missing spec_metadata_generation spec_subsets_max_replicas spec_strategy_type labels`,
}

func TestNamesAreThoseOfKruiseStateMetrics(t *testing.T) {
	for gvk, r := range readSettings(t) {
		names := map[string]bool{}
		for _, m := range r.Metrics {
			names[*r.MetricNamePrefix+"_"+m.Name] = true
		}
		for _, name := range strings.Fields(kruiseStateMetrics[gvk.Kind]) {
			if full := "kruise_" + strings.ToLower(gvk.Kind) + "_" + name; !names[full] {
				t.Errorf("%s is not there", full)
			}
		}
	}
}
