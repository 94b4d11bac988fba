// SPDX-License-Identifier: Apache-2.0

// Package api_test holds what must be true of the generated CRDs as a whole.
package api_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	crdinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

const crdDir = "../../charts/kruise/files/crds"

func TestTheAPIServerTakesEveryGeneratedCRD(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(crdDir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("finding CRDs: %v, %d files", err, len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			crd := readCRD(t, file)
			// The server fills this in; validation insists on it.
			crd.Status.StoredVersions = []string{storageVersion(crd)}
			if errs := validation.ValidateCustomResourceDefinition(t.Context(), crd); len(errs) > 0 {
				t.Errorf("the CRD is invalid: %v", errs.ToAggregate())
			}
		})
	}
}

func TestPolicyBundleFiles(t *testing.T) {
	text := map[string]any{"a.rego": "package a"}
	many := func(n int, size int) map[string]any {
		files := map[string]any{}
		for i := range n {
			files["f"+strings.Repeat("x", i)+".rego"] = strings.Repeat("y", size)
		}
		return files
	}
	kinds := map[string]string{"ClusterPolicyBundle": "policy.kruise.io_clusterpolicybundles.yaml", "PolicyBundle": "policy.kruise.io_policybundles.yaml"}
	for _, tc := range []struct {
		name  string
		files map[string]any
		mode  any
		want  string
	}{
		{name: "a policy at the root is taken", files: text},
		{name: "data in folders is taken", files: map[string]any{"extend/rollout/data.json": "{}", "a/b_c-d/x.yaml": "", "a/.yml": ""}, want: "no part of it begins with a dot"},
		{name: "files of every kind are taken", files: map[string]any{"a/data.json": "{}", "a/b_c-d/x.yaml": "", "x.yml": "", "a/x_test.rego": ""}},
		{name: "an empty bundle is refused", files: map[string]any{}, want: "should have at least 1 properties"},
		{name: "an absolute path is refused", files: map[string]any{"/etc/a.rego": ""}, want: "A path is relative"},
		{name: "a path that climbs is refused", files: map[string]any{"a/../b.rego": ""}, want: "A path is relative"},
		{name: "a path with a blank is refused", files: map[string]any{"a b.rego": ""}, want: "A path is relative"},
		{name: "a double slash is refused", files: map[string]any{"a//b.rego": ""}, want: "A path is relative"},
		{name: "another ending is refused", files: map[string]any{"a.wasm": ""}, want: "A path ends with"},
		{name: "a long path is refused", files: map[string]any{strings.Repeat("a", 252) + ".rego": ""}, want: "at most 256 characters"},
		{name: "too many files are refused", files: many(257, 0), want: "must have at most 256 items"},
		{name: "a file that is too large is refused", files: many(1, 262145), want: "may not be more than 262144 bytes"},
		{name: "files that are too large together are refused", files: many(5, 250000), want: "at most 1000000 characters"},
		{name: "a million characters are taken", files: many(4, 250000)},
		{name: "another mode is refused", files: text, mode: "Sideways", want: `supported values: "Enforce", "Shadow"`},
		{name: "a shadow is taken", files: text, mode: "Shadow"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := map[string]any{"files": tc.files}
			if tc.mode != nil {
				spec["mode"] = tc.mode
			}
			for kind, file := range kinds {
				got := validate(t, file, "v1alpha1", map[string]any{
					"apiVersion": "policy.kruise.io/v1alpha1", "kind": kind,
					"metadata": map[string]any{"name": "x", "namespace": "x"}, "spec": spec,
				})
				switch {
				case tc.want == "" && len(got) > 0:
					t.Errorf("%s: got %v, want no error", kind, got)
				case tc.want != "" && (len(got) == 0 || !strings.Contains(got.ToAggregate().Error(), tc.want)):
					t.Errorf("%s: got %v, want %q", kind, got, tc.want)
				}
			}
		})
	}
}

// validate asks the schema and its CEL rules, as the API server does.
func validate(t *testing.T, file, version string, object map[string]any) field.ErrorList {
	t.Helper()
	crd := readCRD(t, filepath.Join(crdDir, file))
	schema, err := apiextensions.GetSchemaForVersion(crd, version)
	if err != nil || schema == nil {
		t.Fatalf("finding the schema: %v", err)
	}
	validator, _, err := schemavalidation.NewSchemaValidator(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("building the validator: %v", err)
	}
	errs := schemavalidation.ValidateCustomResource(nil, object, validator)
	structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("building the structural schema: %v", err)
	}
	rules := cel.NewValidator(structural, true, math.MaxInt64)
	celErrs, _ := rules.Validate(context.Background(), nil, structural, object, nil, math.MaxInt64)
	return append(errs, celErrs...)
}

func readCRD(t *testing.T, file string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v1 := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, v1); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	scheme := runtime.NewScheme()
	crdinstall.Install(scheme)
	scheme.Default(v1)
	crd := &apiextensions.CustomResourceDefinition{}
	if err := scheme.Convert(v1, crd, nil); err != nil {
		t.Fatalf("converting %s: %v", file, err)
	}
	return crd
}

func storageVersion(crd *apiextensions.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}
