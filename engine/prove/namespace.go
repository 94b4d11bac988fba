// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// namespacePaths are the fields of an input that hold the namespace of what it is about: its own, and those
// of the structs in it that it always has.
func namespacePaths(in reflect.Type) [][]string {
	var out [][]string
	if t := fieldType(in, "namespace"); t != nil && t.Kind() == reflect.String {
		out = append(out, []string{"namespace"})
	}
	for _, f := range reflect.VisibleFields(in) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || f.Type.Kind() != reflect.Struct {
			continue
		}
		if t := fieldType(f.Type, "namespace"); t != nil && t.Kind() == reflect.String {
			out = append(out, []string{name, "namespace"})
		}
	}
	return out
}

// isNamespace reports whether a fact is the namespace of what the input is about.
func (p factPath) isNamespace(paths [][]string) bool {
	names := make([]string, 0, len(p.steps))
	for _, s := range p.steps {
		if s.each {
			return false
		}
		names = append(names, s.name)
	}
	return !p.key && slices.ContainsFunc(paths, func(path []string) bool { return slices.Equal(path, names) })
}

// fixNamespace copies an input into the namespace whose bundles decide. Without one the input stays as it is.
func (s *searcher) fixNamespace(input any) any {
	if s.Namespace == "" {
		return input
	}
	for _, path := range namespacePaths(s.point.In) {
		input = withPart(input, path, s.Namespace)
	}
	return input
}

// withPart copies a value with another one in one place.
func withPart(v any, path []string, part any) any {
	if len(path) == 0 {
		return part
	}
	object, _ := v.(map[string]any)
	if object = maps.Clone(object); object == nil {
		object = map[string]any{}
	}
	object[path[0]] = withPart(object[path[0]], path[1:], part)
	return object
}
