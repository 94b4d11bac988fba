// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/api"
	"github.com/regatta-sh/regatta/controllers/webhook/statefulset"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// suite is testdata/cases.yaml of the package of a kind: what an API server says
// of manifests, with the schema, the CEL rules and the webhooks of the kind.
type suite struct {
	// Base is an object that is fine. Older is one of v1alpha1, where it is no
	// Base with another apiVersion.
	Base, Older map[string]any
	// Objects are there before, with the status that they have here: no controller writes one.
	Objects []map[string]any
	Cases   []manifest
}

// manifest is the base with a change, and perhaps one more change by an update.
type manifest struct {
	Name string
	// Version is v1beta1 if it is empty, or v1alpha1 where there is no other.
	Version string
	// Change and Update are JSON merge patches.
	Change, Update map[string]any
	// Want are the expected errors, each as "field: words of the message";
	// none if it is taken.
	Want []string
	// Get is a part of the object that the API server has afterwards.
	Get map[string]any
}

// cluster is an API server with our CRDs and webhooks.
type cluster struct {
	api  client.Client
	crds map[string]*apiextensionsv1.CustomResourceDefinition // by kind
}

func start(t *testing.T) *cluster {
	t.Helper()
	env := apiserver.Start(t)
	scheme := everything(t)
	c := &cluster{}
	var err error
	if c.api, err = client.New(env.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	// The namespace of the manager, where several kinds have something looked up.
	if err := c.api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-system"}}); err != nil {
		t.Fatal(err)
	}
	handlers, err := HandlersByPath(scheme, c.api, Options{StatefulSets: statefulset.Gates{AutoDeletePVC: true, AutoResizePVC: true}})
	if err != nil {
		t.Fatal(err)
	}
	c.crds = apiserver.ServeWebhooks(t, env, handlers, ConvertPath)
	return c
}

// everything is the scheme of the manager.
func everything(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// suites are those of all kinds, by file.
func suites(t *testing.T) map[string]*suite {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "*", "testdata", "cases.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("finding cases: %v", err)
	}
	out := map[string]*suite{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := &suite{}
		if err := yaml.UnmarshalStrict(raw, s); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		out[file] = s
	}
	return out
}

// base is what a case changes.
func (s *suite) base(m *manifest) map[string]any {
	if m.Version == "v1alpha1" && s.Older != nil {
		return s.Older
	}
	return s.Base
}

// Of every kind the API server takes what is right and refuses what is wrong,
// naming the field.
func TestManifests(t *testing.T) {
	c := start(t)
	type row struct{ bySchema, byWebhook, taken int }
	rows := map[string]*row{}
	for file, s := range suites(t) {
		kind, _ := s.Base["kind"].(string)
		crd := c.crds[kind]
		if crd == nil {
			t.Fatalf("%s is about kind %q, which is not ours", file, kind)
		}
		rows[kind] = &row{}
		t.Run(kind, func(t *testing.T) {
			for _, object := range s.Objects {
				o := &unstructured.Unstructured{Object: object}
				place(o, crd.Spec.Scope)
				status := o.Object["status"] // no create takes it
				if err := c.create(t, o); err != nil {
					t.Fatalf("creating %s %s: %v", o.GetKind(), o.GetName(), err)
				}
				if status != nil {
					o.Object["status"] = status
					if err := c.api.Status().Update(t.Context(), o); err != nil {
						t.Fatalf("writing the status of %s %s: %v", o.GetKind(), o.GetName(), err)
					}
				}
				t.Cleanup(func() { _ = c.api.Delete(context.Background(), o) })
			}
			for i, m := range s.Cases {
				t.Run(m.Name, func(t *testing.T) {
					got, err := c.try(t, s, &m, crd, fmt.Sprintf("case-%d", i))
					compare(t, &m, got, err)
					switch {
					case err == nil:
						rows[kind].taken++
					case strings.Contains(err.Error(), "admission webhook"):
						rows[kind].byWebhook++
					default:
						rows[kind].bySchema++
					}
				})
			}
		})
	}
	table, refused := fmt.Sprintf("%-28s %6s %4s %7s %8s %6s\n", "KIND", "FIELDS", "CEL", "SCHEMA", "WEBHOOK", "TAKEN"), 0
	for _, kind := range slices.Sorted(maps.Keys(c.crds)) {
		r, crd := rows[kind], c.crds[kind]
		if kind == "ClusterPolicyBundle" || kind == "PolicyBundle" { // controllers/api and controllers/policybundle try their rules
			continue
		}
		if r == nil {
			t.Errorf("nothing is tried of %s", kind)
			continue
		}
		fields, rules := 0, 0
		for _, v := range crd.Spec.Versions {
			count(v.Schema.OpenAPIV3Schema, &fields, &rules)
		}
		table += fmt.Sprintf("%-28s %6d %4d %7d %8d %6d\n", kind, fields, rules, r.bySchema, r.byWebhook, r.taken)
		if refused += r.bySchema + r.byWebhook; r.bySchema+r.byWebhook < 5 {
			t.Errorf("only %d manifests of %s are refused", r.bySchema+r.byWebhook, kind)
		}
	}
	t.Logf("manifests refused by the schema and its rules, and by the webhook: %d\n%s", refused, table)
	if refused < 150 {
		t.Errorf("only %d manifests are refused", refused)
	}
}

// try creates the object of a case, or creates its base and updates it.
func (c *cluster) try(t *testing.T, s *suite, m *manifest, crd *apiextensionsv1.CustomResourceDefinition, name string) (*unstructured.Unstructured, error) {
	t.Helper()
	o := &unstructured.Unstructured{Object: merged(t, s.base(m), map[string]any{"metadata": map[string]any{"name": name}})}
	if m.Version != "" {
		o.SetAPIVersion(crd.Spec.Group + "/" + m.Version)
	}
	place(o, crd.Spec.Scope)
	o.Object = merged(t, o.Object, m.Change)
	if m.Update == nil {
		return o, c.api.Create(t.Context(), o, client.DryRunAll)
	}
	if err := c.create(t, o); err != nil {
		t.Fatalf("creating what is updated: %v", err)
	}
	t.Cleanup(func() { _ = c.api.Delete(context.Background(), o) })
	updated := &unstructured.Unstructured{Object: merged(t, o.Object, m.Update)}
	return updated, c.api.Update(t.Context(), updated, client.DryRunAll)
}

// create waits for the API server to know the kind and its webhooks, as it says
// that it does a moment too early.
func (c *cluster) create(t *testing.T, o *unstructured.Unstructured) error {
	t.Helper()
	fresh := o.DeepCopy()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		err := c.api.Create(t.Context(), o)
		if !apierrors.IsNotFound(err) && !apierrors.IsInternalError(err) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		fresh.DeepCopyInto(o)
	}
	return c.api.Create(t.Context(), o)
}

func place(o *unstructured.Unstructured, scope apiextensionsv1.ResourceScope) {
	if o.GetNamespace() == "" && (scope == apiextensionsv1.NamespaceScoped || !strings.Contains(o.GetAPIVersion(), "kruise.io")) && o.GetKind() != "Node" {
		o.SetNamespace("default")
	}
}

func compare(t *testing.T, m *manifest, got *unstructured.Unstructured, err error) {
	t.Helper()
	if len(m.Want) == 0 {
		if err != nil {
			t.Fatalf("it is refused: %v", err)
		}
		want := merged(t, got.Object, m.Get)
		if a, b := text(t, want), text(t, got.Object); a != b {
			t.Errorf("got %s\nwant in it %s", b, text(t, m.Get))
		}
		return
	}
	if err == nil {
		t.Fatalf("it is taken; want %v", m.Want)
	}
	var causes []string
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Field == "<nil>" { // that rules are not checked where the form is wrong
				continue
			}
			causes = append(causes, cause.Field+": "+cause.Message)
		}
	}
	if len(causes) == 0 {
		causes = []string{err.Error()}
	}
	if len(causes) != len(m.Want) {
		t.Errorf("got %d mistakes, want %d:\n%s", len(causes), len(m.Want), strings.Join(causes, "\n"))
	}
	for _, want := range m.Want {
		field, words, _ := strings.Cut(want, ": ")
		if !slices.ContainsFunc(causes, func(cause string) bool {
			return strings.HasPrefix(cause, field+": ") && strings.Contains(cause, words)
		}) {
			t.Errorf("%q is not told, but\n%s", want, strings.Join(causes, "\n"))
		}
	}
}

func merged(t *testing.T, base, change map[string]any) map[string]any {
	t.Helper()
	raw := []byte(text(t, base))
	if change != nil {
		var err error
		if raw, err = jsonpatch.MergePatch(raw, []byte(text(t, change))); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]any{}
	if err := yaml.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// count counts the fields of a schema, and its CEL rules.
func count(s *apiextensionsv1.JSONSchemaProps, fields, rules *int) {
	*rules += len(s.XValidations)
	for name := range s.Properties {
		*fields++
		p := s.Properties[name]
		count(&p, fields, rules)
	}
	if s.Items != nil && s.Items.Schema != nil {
		count(s.Items.Schema, fields, rules)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		count(s.AdditionalProperties.Schema, fields, rules)
	}
}
