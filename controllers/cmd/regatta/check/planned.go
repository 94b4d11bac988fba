// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	chart "github.com/regatta-sh/regatta/charts/kruise"
)

// sample has the objects that the chart renders with its default values, without CRDs and hooks.
// TestTheSampleIsOfTheChart writes it.
//
//go:embed sample.yaml
var sample string

// mostRendered is how many bytes of rendered objects are read: the chart has one megabyte.
const mostRendered = 32 << 20

// hook is the annotation of objects that Helm creates and deletes outside of the release.
const hook = "helm.sh/hook"

// readRendered reads what helm template prints.
func readRendered(stdin io.Reader, path string) ([]client.Object, error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, mostRendered+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostRendered {
		return nil, fmt.Errorf("it has more than %d bytes", mostRendered)
	}
	objects, err := decodeObjects(text)
	if err == nil && len(objects) == 0 {
		err = errors.New("there are no objects in it")
	}
	return objects, err
}

// decodeObjects reads objects as YAML, a document each.
func decodeObjects(text []byte) ([]client.Object, error) {
	var out []client.Object
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for n := 1; ; n++ {
		o := &unstructured.Unstructured{}
		err := documents.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if len(o.Object) == 0 {
			continue
		}
		if o.GetKind() == "" || o.GetAPIVersion() == "" {
			return nil, fmt.Errorf("document %d has no apiVersion or no kind", n)
		}
		if o.GetName() == "" {
			return nil, fmt.Errorf("document %d, a %s, has no metadata.name", n, o.GetKind())
		}
		if o.GetAnnotations()[hook] == "" {
			out = append(out, o)
		}
	}
}

// findPlanned returns the objects that an installation creates: the rendered ones, or those of the chart with its
// default values.
func (i *inspector) findPlanned() ([]client.Object, error) {
	if i.rendered != nil {
		return i.rendered, nil
	}
	version := strings.TrimPrefix(i.Program.Regatta, "v")
	if version == "" || strings.ContainsAny(version, "(+") {
		version = "0.0.0" // a build that is no release has no image
	}
	text := strings.NewReplacer("kruise-system", i.Namespace, "VERSION", version).Replace(sample)
	out, err := decodeObjects([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("reading the sample: %w", err)
	}
	crds, err := chartCRDs()
	if err != nil {
		return nil, err
	}
	return append(out, crds...), nil
}

// chartCRDs are the CRDs of the chart that this program was built with.
func chartCRDs() ([]client.Object, error) {
	const folder = "files/crds"
	files, err := chart.CRDs.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading the CRDs: %w", err)
	}
	var out []client.Object
	for _, file := range files {
		text, err := chart.CRDs.ReadFile(folder + "/" + file.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the CRDs: %w", err)
		}
		objects, err := decodeObjects(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file.Name(), err)
		}
		out = append(out, objects...)
	}
	return out, nil
}
