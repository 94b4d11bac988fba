// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/sidecarset/history"
	revisions "github.com/regatta-sh/regatta/controllers/workload/revision"
)

// readFields reads the fields of a workload from a revision.
func readFields(kind edit.Kind, object *unstructured.Unstructured) ([]recordedField, error) {
	switch kind.GroupKind() {
	case sidecarSet:
		return readSidecarSetFields(object)
	case deployment:
		template, err := readTemplate(object, "spec", "template")
		if err != nil {
			return nil, err
		}
		unstructured.RemoveNestedField(template, "metadata", "labels", appsv1.DefaultDeploymentUniqueLabelKey)
		return []recordedField{{edit.Path{"spec", "template"}, template}}, nil
	}
	template, err := readTemplate(object, "data", "spec", "template")
	return []recordedField{{edit.Path{"spec", "template"}, template}}, err
}

func readTemplate(object *unstructured.Unstructured, path ...string) (map[string]any, error) {
	template, found, err := unstructured.NestedMap(object.Object, path...)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, fmt.Errorf("it has no field %s", strings.Join(path, "."))
	}
	delete(template, patchDirective)
	removeNulls(template)
	return template, nil
}

// readSidecarSetFields reads the fields of a SidecarSet that a revision has. A field that the revision does not have is
// one that the SidecarSet did not have. The name that the user gave the revision is a label of it.
func readSidecarSetFields(object *unstructured.Unstructured) ([]recordedField, error) {
	spec, err := readTemplate(object, "data", "spec")
	if err != nil {
		return nil, err
	}
	names, err := sidecarSetFields()
	if err != nil {
		return nil, err
	}
	var out []recordedField
	for _, name := range names {
		out = append(out, recordedField{edit.Path{"spec", name}, spec[name]})
	}
	version := recordedField{path: edit.Path{"spec", "customVersion"}}
	if label := object.GetLabels()[kruise.SidecarSetCustomVersionKey]; label != "" {
		version.value = label
	}
	return append(out, version), nil
}

// sidecarSetFields are the fields of the spec that a revision of a SidecarSet has.
func sidecarSetFields() ([]string, error) {
	raw, err := history.EncodeSpec(&kruise.SidecarSetSpec{})
	if err != nil {
		return nil, err
	}
	var data struct {
		Spec map[string]any `json:"spec"`
	}
	if err := json.Unmarshal(raw, &data); err != nil {
		return nil, fmt.Errorf("reading the fields of a revision: %w", err)
	}
	delete(data.Spec, patchDirective)
	var out []string
	for name := range data.Spec {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, nil
}

// removeNulls removes fields that are null, which the API server takes as missing.
func removeNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if field == nil {
				delete(v, key)
				continue
			}
			removeNulls(field)
		}
	case []any:
		for _, element := range v {
			removeNulls(element)
		}
	}
}

// readClaimTemplates reads the volume claim templates that a revision records. ok is false if it records none.
func readClaimTemplates(r *recordedRevision) (_ []corev1.PersistentVolumeClaim, ok bool) {
	return revisions.ClaimTemplates(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Annotations: r.object.GetAnnotations()}})
}
