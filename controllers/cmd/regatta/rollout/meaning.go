// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// meaning is what fields mean.
type meaning struct {
	// typed has the fields as the types that the controllers read, in which a missing field is the same as an empty one.
	typed any
	// unknown names the fields that the types of this build lack: the cluster may be newer. rest has their values.
	unknown []string
	rest    any
}

func (m meaning) hasEqualTypes(other meaning) bool {
	return equality.Semantic.DeepEqual(m.typed, other.typed)
}

func (m meaning) hasEqualRest(other meaning) bool {
	return slices.Equal(m.unknown, other.unknown) && equality.Semantic.DeepEqual(m.rest, other.rest)
}

// decodeBoth returns what the fields of the revision mean, and what those of a workload mean.
func (r *recordedRevision) decodeBoth(kind edit.Kind, object *unstructured.Unstructured) (recorded, live meaning, err error) {
	if r.damage != nil {
		return recorded, live, r.damage
	}
	fields := make([]recordedField, len(r.fields))
	for i, f := range r.fields {
		value, _, err := unstructured.NestedFieldNoCopy(object.Object, f.path...)
		if err != nil {
			return recorded, live, fmt.Errorf("reading %s: %w", f.path, err)
		}
		fields[i] = recordedField{f.path, value}
	}
	if recorded, err = decodeFields(kind, r.fields); err == nil {
		live, err = decodeFields(kind, fields)
	}
	return recorded, live, err
}

// decodeFields returns what fields mean.
func decodeFields(kind edit.Kind, fields []recordedField) (meaning, error) {
	values := map[string]any{}
	for _, f := range fields {
		if f.value != nil && f.isCompared() {
			values[f.path[len(f.path)-1]] = runtime.DeepCopyJSONValue(f.value)
		}
	}
	removeNulls(values)
	var m meaning
	switch kind.GroupKind() {
	case sidecarSet:
		m.typed = &kruise.SidecarSetSpec{}
	case unitedDeployment:
		m.typed = &kruise.UnitedDeploymentSpec{}
	default:
		m.typed = &appsv1.ReplicaSetSpec{}
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(values, m.typed, true)
	unknown, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return m, err
	}
	for _, field := range unknown.Errors() {
		m.unknown = append(m.unknown, field.Error())
	}
	known, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m.typed)
	m.rest = selectUnknown(values, known)
	return m, err
}

// isCompared is false for a field that names the revision and is no part of it.
func (f recordedField) isCompared() bool { return f.path[len(f.path)-1] != "customVersion" }

// selectUnknown returns what a value has in addition to the value of its type, without empty fields; nil if that is
// nothing. A type may write a value that it has in another form.
func selectUnknown(value, known any) any {
	switch v := value.(type) {
	case map[string]any:
		fields, _ := known.(map[string]any)
		rest := map[string]any{}
		for key, field := range v {
			if more := selectUnknown(field, fields[key]); more != nil {
				rest[key] = more
			}
		}
		if len(rest) > 0 {
			return rest
		}
		return nil
	case []any:
		elements, _ := known.([]any)
		rest := map[int]any{}
		for i, element := range v {
			var of any
			if i < len(elements) {
				of = elements[i]
			}
			if more := selectUnknown(element, of); more != nil {
				rest[i] = more
			}
		}
		if len(rest) > 0 {
			return rest
		}
		return nil
	}
	if known != nil || slices.Contains([]any{"", false, int64(0), float64(0)}, value) {
		return nil
	}
	return value
}
