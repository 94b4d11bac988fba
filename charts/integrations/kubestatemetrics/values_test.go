// SPDX-License-Identifier: Apache-2.0

package kubestatemetrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	chart "github.com/regatta-sh/regatta/charts/kruise"
)

func TestValuesAndTablesAreNotStale(t *testing.T) {
	want, err := BuildValues()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(ValuesFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run make generate: %s", diff)
	}
	page, err := os.ReadFile(PageFile)
	if err != nil {
		t.Fatal(err)
	}
	replaced, err := ReplaceTables(string(page))
	if err != nil {
		t.Fatal(err)
	}
	if replaced != string(page) {
		t.Error("the tables of " + PageFile + " are stale: run make generate")
	}
	if _, err := ReplaceTables("a page without a place for them"); err == nil {
		t.Error("tables are put into a page that has no place for them")
	}
}

// A path that leads nowhere would be a metric without series, or one that is always 0.
func TestEachMetricIsOfAFieldOfItsKind(t *testing.T) {
	stored := readStoredVersions(t)
	for _, k := range kinds {
		crd, ok := stored[k.group+"/"+k.name]
		if !ok {
			t.Errorf("there is no kind %s in %s", k.name, k.group)
			continue
		}
		delete(stored, k.group+"/"+k.name)
		if plural := strings.ToLower(k.name) + "s"; plural != crd.plural { // what the rights name
			t.Errorf("the resources of %s are %s, not %s", k.name, crd.plural, plural)
		}
		if k.version != crd.version || k.namespaced != crd.namespaced {
			t.Errorf("%s: %s, namespaced %t, but its objects are stored in %s, namespaced %t", k.name, k.version, k.namespaced, crd.version, crd.namespaced)
		}
		for _, m := range k.metrics {
			if strings.HasPrefix(m.path, "metadata.") { // no part of the schema
				continue
			}
			field := findField(crd.schema, m.path)
			if field == nil {
				t.Errorf("%s: %s has no field %s", m.name, k.name, m.path)
				continue
			}
			checkField(t, k.name+" "+m.name, *field, m)
		}
	}
	for name := range stored {
		t.Errorf("%s has no metrics", name)
	}
}

// checkField compares a metric with the schema of the field at its path, or of the elements of that.
func checkField(t *testing.T, name string, field apiextensionsv1.JSONSchemaProps, m metric) {
	t.Helper()
	if field.Type == "array" {
		field = *field.Items.Schema
	}
	value := findField(field, m.value)
	if value == nil {
		t.Errorf("%s: there is no field %s in %s", name, m.value, m.path)
		return
	}
	switch {
	case m.kind == gauge && !isNumber(*value):
		t.Errorf("%s is of the type %q, and no number", name, value.Type)
	case m.kind == stateSet && value.Type != "string":
		t.Errorf("%s is of the type %q, and no text", name, value.Type)
	case m.kind == stateSet && len(value.Enum) > 0 && m.value == "":
		var enum []string
		for _, e := range value.Enum {
			enum = append(enum, strings.Trim(string(e.Raw), `"`))
		}
		if diff := cmp.Diff(enum, m.states); diff != "" {
			t.Errorf("%s has other values: %s", name, diff)
		}
	}
	for label, path := range m.labels {
		found := findField(field, path)
		if found == nil && path == "name" && field.XPreserveUnknownFields != nil { // a part of Kubernetes' container
			continue
		}
		if found == nil || found.Type != "string" && !found.XIntOrString {
			t.Errorf("%s: the label %s is not of a text", name, label)
		}
	}
}

// isNumber is true for what kube-state-metrics reads as a number: also true and false, times and percentages.
func isNumber(field apiextensionsv1.JSONSchemaProps) bool {
	return slices.Contains([]string{"integer", "boolean"}, field.Type) || field.XIntOrString || field.Format == "date-time"
}

// storedVersion is the version in which objects of a kind are stored.
type storedVersion struct {
	version    string
	plural     string
	namespaced bool
	schema     apiextensionsv1.JSONSchemaProps
}

func readStoredVersions(t *testing.T) map[string]storedVersion {
	t.Helper()
	out := map[string]storedVersion{}
	entries, err := chart.CRDs.ReadDir("files/crds")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := chart.CRDs.ReadFile("files/crds/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatalf("%s: %v", entry.Name(), err)
		}
		for _, v := range crd.Spec.Versions {
			if v.Storage {
				out[crd.Spec.Group+"/"+crd.Spec.Names.Kind] = storedVersion{v.Name, crd.Spec.Names.Plural, crd.Spec.Scope == apiextensionsv1.NamespaceScoped, *v.Schema.OpenAPIV3Schema}
			}
		}
	}
	return out
}

// findField returns the schema of a field, or nil.
func findField(schema apiextensionsv1.JSONSchemaProps, path string) *apiextensionsv1.JSONSchemaProps {
	for _, part := range buildPath(path) {
		next, ok := schema.Properties[part]
		if !ok {
			return nil
		}
		schema = next
	}
	return &schema
}

// The names and the help are what users see.
func TestMetricsAreNamedOnceAndSaid(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for _, k := range kinds {
		seen := map[string]bool{}
		for _, m := range k.metrics {
			if name := k.prefix + "_" + m.name; !word.MatchString(name) || seen[name] {
				t.Errorf("%s is no name, or is there twice", name)
			}
			seen[k.prefix+"_"+m.name] = true
			if !strings.HasSuffix(m.help, ".") || strings.Contains(m.help, "|") {
				t.Errorf("%s: %q is no sentence of a table", m.name, m.help)
			}
		}
	}
}
