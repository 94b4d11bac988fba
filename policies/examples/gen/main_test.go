// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/engine/bundle"
)

func TestBundlesAreWhatTheirFilesSay(t *testing.T) {
	err := generateBundles("..", func(name string, want []byte, _ os.FileMode) error {
		got, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is stale, run make generate: want (-), got (+):\n%s", name, diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBundlesAreObjectsOfTheirKindAndKeepEveryByte(t *testing.T) {
	err := generateBundles("..", func(name string, text []byte, _ os.FileMode) error {
		folder := filepath.Dir(name)
		ns := tenantNamespaces()[filepath.Base(folder)]
		var object policy.AnyPolicyBundle = &policy.ClusterPolicyBundle{}
		kind, opts := "ClusterPolicyBundle", []bundle.Option{}
		if ns != "" {
			object, kind, opts = &policy.PolicyBundle{}, "PolicyBundle", []bundle.Option{bundle.AsTenant(ns)}
		}
		if err := yaml.UnmarshalStrict(text, object); err != nil {
			return err
		}
		if want := policy.GroupVersion.WithKind(kind); object.GetObjectKind().GroupVersionKind() != want || object.GetNamespace() != ns {
			t.Errorf("%s is a %s in %q", name, object.GetObjectKind().GroupVersionKind(), object.GetNamespace())
		}
		files := map[string]string{}
		for path, got := range object.DesiredSpec().Files {
			files[path] = string(got)
			want, err := os.ReadFile(filepath.Join(folder, strings.TrimPrefix(path, filepath.Base(folder)+"/")))
			if err != nil {
				return err
			}
			if string(want) != string(got) {
				t.Errorf("%s has another %s than there is", name, path)
			}
		}
		read, err := bundle.FromFiles(object.GetName(), files, opts...)
		if problems := read.CheckContract(); err == nil && len(problems) > 0 {
			t.Errorf("%s is refused: %v", name, problems)
		}
		if err == nil && (len(read.Modules) == 0 || len(read.Tests) == 0) {
			t.Errorf("%s has %d policies and %d tests", name, len(read.Modules), len(read.Tests))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAFolderWithoutExamplesIsAMistake(t *testing.T) {
	if err := generateBundles(t.TempDir(), os.WriteFile); err == nil {
		t.Error("want an error")
	}
}
