// SPDX-License-Identifier: Apache-2.0

package set

import (
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"

	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

// envSource is a ConfigMap or a Secret whose keys become variables.
type envSource struct{ kind, resource, field, name string }

// parseSource reads configmap/NAME or secret/NAME.
func parseSource(text string) (envSource, error) {
	word, name, _ := strings.Cut(text, "/")
	source := envSource{name: name}
	switch strings.ToLower(word) {
	case "configmap", "configmaps", "cm":
		source.kind, source.resource, source.field = "ConfigMap", "configmaps", "configMapKeyRef"
	case "secret", "secrets":
		source.kind, source.resource, source.field = "Secret", "secrets", "secretKeyRef"
	}
	if source.kind == "" || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return envSource{}, exit.UsageErrorf("--from is %q; want configmap/NAME or secret/NAME", text)
	}
	return source, nil
}

// notInNames are characters that a name of a variable may not have.
var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// addFromSource adds variables that read the keys of --from. Keys whose names change are told.
func (o *envOptions) addFromSource(ctx context.Context, warnings io.Writer, change *envChange) error {
	source, err := parseSource(o.from)
	if err != nil {
		return err
	}
	keys, err := o.readKeys(ctx, source)
	if err != nil {
		return err
	}
	for _, key := range keys {
		name := strings.ToUpper(notInNames.ReplaceAllString(key, "_"))
		if name != key {
			fmt.Fprintf(warnings, "key %s of %s %s becomes variable %s\n", key, source.kind, source.name, o.prefix+name)
		}
		change.set = append(change.set, newVariable(name, map[string]any{
			"valueFrom": map[string]any{source.field: map[string]any{"name": source.name, "key": key}},
		}))
	}
	return nil
}

// readKeys returns the selected keys of a source.
func (o *envOptions) readKeys(ctx context.Context, source envSource) ([]string, error) {
	objects, err := o.OpenClient()
	if err != nil {
		return nil, err
	}
	about, err := o.Cluster.ResolveNamespace(target.Target{})
	if err != nil {
		return nil, err
	}
	client := objects.Resource(corev1.SchemeGroupVersion.WithResource(source.resource)).Namespace(about.Namespace)
	read, err := client.Get(ctx, source.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no %s %s in namespace %s", source.kind, source.name, about.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", source.kind, source.name, err)
	}
	data, _, err := unstructured.NestedMap(read.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", source.kind, source.name, err)
	}
	present := slices.Sorted(maps.Keys(data))
	if len(present) == 0 {
		return nil, exit.RefusalErrorf("%s %s has no keys in data", source.kind, source.name)
	}
	if len(o.keys) == 0 {
		return present, nil
	}
	for _, key := range o.keys {
		if !slices.Contains(present, key) {
			return nil, exit.RefusalErrorf("%s %s has no key %q; it has %s", source.kind, source.name, key, strings.Join(present, ", "))
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(o.keys))), nil
}

// isSameVariable is true if two entries of env have the same value. An entry without a value has an empty one.
func isSameVariable(a, b map[string]any) bool {
	value := func(fields map[string]any) any {
		if fields["value"] == nil {
			return ""
		}
		return fields["value"]
	}
	return equality.Semantic.DeepEqual(value(a), value(b)) && equality.Semantic.DeepEqual(a["valueFrom"], b["valueFrom"])
}
