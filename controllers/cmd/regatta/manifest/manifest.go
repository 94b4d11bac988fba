// SPDX-License-Identifier: Apache-2.0

// Package manifest reads files of Kubernetes objects.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// ForEachObject calls f for each object of a YAML or JSON file, which may have several documents and
// lists. It ends at the first error, and names the file in it.
func ForEachObject(path string, f func(*unstructured.Unstructured) error) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading objects: %w", err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := map[string]any{}
		err := documents.Decode(&o)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && len(o) > 0 {
			err = visitObjects(&unstructured.Unstructured{Object: o}, f)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
}

func visitObjects(o *unstructured.Unstructured, f func(*unstructured.Unstructured) error) error {
	switch {
	case o.GetKind() == "":
		return errors.New("an object has no kind")
	case o.IsList():
		return o.EachListItem(func(item runtime.Object) error { return visitObjects(item.(*unstructured.Unstructured), f) })
	}
	return f(o)
}
