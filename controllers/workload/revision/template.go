// SPDX-License-Identifier: Apache-2.0

// Package revision keeps the history of a workload's pod template in
// ControllerRevisions.
package revision

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

// document is the data of a revision. If it is applied as a strategic merge patch, the directive
// replaces the whole template.
type document struct {
	Spec struct {
		Template map[string]any `json:"template"`
	} `json:"spec"`
}

const directive = "$patch"

// EncodeTemplate returns the data of the revision of a template.
func EncodeTemplate(template *corev1.PodTemplateSpec) ([]byte, error) {
	raw, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encoding pod template: %w", err)
	}
	var doc document
	if err := json.Unmarshal(raw, &doc.Spec.Template); err != nil {
		return nil, fmt.Errorf("encoding pod template: %w", err)
	}
	addTimestamps(doc.Spec.Template)
	doc.Spec.Template[directive] = "replace"
	return json.Marshal(doc) // keys are sorted, so equal templates give equal bytes
}

// addTimestamps writes an unset creationTimestamp as null, as Kubernetes before
// 1.33 and OpenKruise do. OpenKruise compares revisions byte by byte, and would take the
// same template for another one.
func addTimestamps(template map[string]any) {
	unset := func(parent any) {
		o, _ := parent.(map[string]any)
		if metadata, ok := o["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
			metadata["creationTimestamp"] = nil
		}
	}
	unset(template)
	spec, _ := template["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		ephemeral, _ := volume["ephemeral"].(map[string]any)
		unset(ephemeral["volumeClaimTemplate"])
	}
}

// DecodeTemplate reads the template from a revision.
func DecodeTemplate(rev *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	doc, err := decodeDocument(rev)
	if err != nil {
		return nil, err
	}
	delete(doc.Spec.Template, directive)
	raw, err := json.Marshal(doc.Spec.Template)
	if err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", rev.Name, err)
	}
	template := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(raw, template); err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", rev.Name, err)
	}
	return template, nil
}

func decodeDocument(rev *appsv1.ControllerRevision) (document, error) {
	var doc document
	if err := json.Unmarshal(rev.Data.Raw, &doc); err != nil {
		return doc, fmt.Errorf("reading revision %s: %w", rev.Name, err)
	}
	if doc.Spec.Template == nil {
		return doc, fmt.Errorf("reading revision %s: it has no pod template", rev.Name)
	}
	return doc, nil
}

// EqualData compares two revisions by their meaning: a null, such as the
// creationTimestamp that older releases wrote, is the same as a missing field. No pods must be
// recreated because a cluster changes to Regatta.
func EqualData(a, b *appsv1.ControllerRevision) bool {
	if string(a.Data.Raw) == string(b.Data.Raw) {
		return true
	}
	var x, y any
	if json.Unmarshal(a.Data.Raw, &x) != nil || json.Unmarshal(b.Data.Raw, &y) != nil {
		return false
	}
	return reflect.DeepEqual(withoutNulls(x), withoutNulls(y))
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
				continue
			}
			v[k] = withoutNulls(e)
		}
	case []any:
		for i, e := range v {
			v[i] = withoutNulls(e)
		}
	}
	return v
}

// HashData returns the hash in the name of a revision. Another collision count gives another hash. The
// hash is that of Kubernetes' own controllers and of OpenKruise.
func HashData(data []byte, collisions int32) string {
	h := fnv.New32()
	h.Write(data) // writing to a hash never fails
	h.Write([]byte(strconv.Itoa(int(collisions))))
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// ShortHash returns the hash at the end of a revision's name, or of a pod's label, which
// may be either the name or only the hash.
func ShortHash(name string) string { return name[strings.LastIndexByte(name, '-')+1:] }

// SameHash reports whether two revision labels name the same revision.
func SameHash(a, b string) bool { return a != "" && ShortHash(a) == ShortHash(b) }

// claim is the part of a volume claim template that its hash depends on.
type claim struct {
	Metadata struct {
		Name              string  `json:"name"`
		CreationTimestamp *string `json:"creationTimestamp"` // always null
	} `json:"metadata"`
	Spec   corev1.PersistentVolumeClaimSpec `json:"spec"`
	Status struct{}                         `json:"status"`
}

// ClaimsHash is the hash of the volume claim templates, "" if there are none. It
// is recorded on a revision so that a change of claims is detected.
// OpenKruise records the same.
func ClaimsHash(claims []corev1.PersistentVolumeClaim) (string, error) {
	if len(claims) == 0 {
		return "", nil
	}
	hashed := make([]claim, len(claims))
	for i := range claims {
		hashed[i].Metadata.Name, hashed[i].Spec = claims[i].Name, claims[i].Spec
	}
	slices.SortStableFunc(hashed, func(a, b claim) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	raw, err := json.Marshal(hashed)
	if err != nil {
		return "", fmt.Errorf("encoding volume claim templates: %w", err)
	}
	h := fnv.New32a()
	fmt.Fprint(h, dump.ForHash(raw))
	return fmt.Sprint(h.Sum32()), nil
}
