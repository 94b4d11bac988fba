// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/test/pages"
)

// An API server takes each manifest that the page of a kind shows, without a field that it does not know.
func TestManifestsOfPagesAreTaken(t *testing.T) {
	c := start(t)
	found, err := filepath.Glob(filepath.Join("..", "..", "*", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for _, page := range found {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		namespace := "page-of-" + filepath.Base(filepath.Dir(page))
		if err := c.api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			t.Fatal(err)
		}
		for _, manifest := range pages.ListManifests(string(text)) {
			for _, document := range regexp.MustCompile(`(?m)^---$`).Split(manifest.Text, -1) {
				if err := c.createShown(t, namespace, document); err != nil {
					t.Errorf("%s: %s: %v", page, manifest.Name, err)
				}
				taken++
			}
		}
	}
	if taken < len(found) {
		t.Errorf("%d pages have %d manifests", len(found), taken)
	}
}

func (c *cluster) createShown(t *testing.T, namespace, document string) error {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
		return err
	}
	if strings.HasSuffix(object.GetKind(), "RecreateRequest") { // refused unless its pod runs, which takes a node
		return nil
	}
	namespaced, err := c.api.IsObjectNamespaced(object)
	if err != nil {
		return err
	}
	if namespaced {
		object.SetNamespace(namespace)
	}
	return c.api.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict))
}
