// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/redact"
)

// template is the object that is copied.
type template struct {
	kind   string
	object client.Object // *corev1.Secret or *corev1.ConfigMap
	hash   string
	owner  metav1.OwnerReference
	// secret has the values that no error may repeat; it is empty for a ConfigMap.
	secret redact.Contents
}

func newTemplate(d *kruise.ResourceDistribution) (template, error) {
	raw := bytes.TrimSpace(d.Spec.Resource.Raw)
	var kind metav1.TypeMeta
	if err := json.Unmarshal(raw, &kind); err != nil {
		return template{}, fmt.Errorf("reading spec.resource: %w", redact.DecodeError("Secret or ConfigMap", err))
	}
	sum := sha256.Sum256(raw)
	t := template{kind: kind.Kind, hash: hex.EncodeToString(sum[:])}
	switch {
	case kind.APIVersion == "v1" && kind.Kind == "Secret":
		t.object, t.secret = &corev1.Secret{}, redact.ContentsOfJSON(raw)
	case kind.APIVersion == "v1" && kind.Kind == "ConfigMap":
		t.object = &corev1.ConfigMap{}
	default:
		return t, fmt.Errorf("spec.resource is a %s of %s, and must be a Secret or a ConfigMap of v1", kind.Kind, kind.APIVersion)
	}
	if err := json.Unmarshal(raw, t.object); err != nil {
		return t, fmt.Errorf("reading spec.resource: %w", redact.DecodeError(t.kind, err))
	}
	if t.object.GetName() == "" {
		return t, fmt.Errorf("spec.resource.metadata.name is empty")
	}
	if s, ok := t.object.(*corev1.Secret); ok { // as the API server stores it
		for key, value := range s.StringData {
			if s.Data == nil {
				s.Data = map[string][]byte{}
			}
			s.Data[key] = []byte(value)
		}
		s.StringData = nil
		if s.Type == "" {
			s.Type = corev1.SecretTypeOpaque
		}
	}
	t.owner = metav1.OwnerReference{
		APIVersion: kruise.GroupVersion.String(), Kind: "ResourceDistribution", Name: d.Name, UID: d.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
	o := t.object
	o.SetOwnerReferences([]metav1.OwnerReference{t.owner})
	o.SetAnnotations(mergeMaps(o.GetAnnotations(), map[string]string{kruise.ResourceDistributionHashCodeKey: t.hash, kruise.ResourceDistributionFromKey: d.Name}))
	o.SetResourceVersion("")
	o.SetUID("")
	o.SetManagedFields(nil)
	return t, nil
}

// newCopy is the copy for a namespace.
func (t template) newCopy(namespace string) client.Object {
	o := t.object.DeepCopyObject().(client.Object)
	o.SetNamespace(namespace)
	return o
}

// newEmptyObject returns an empty object of the kind.
func (t template) newEmptyObject() client.Object {
	if t.kind == "Secret" {
		return &corev1.Secret{}
	}
	return &corev1.ConfigMap{}
}

// updateCopy brings a copy up to date and reports whether anything of it changed. Labels, annotations
// and finalizers that others added stay (RD-02).
func (t template) updateCopy(copied client.Object) (changed bool) {
	before := copied.DeepCopyObject()
	switch from := t.object.(type) {
	case *corev1.Secret:
		to := copied.(*corev1.Secret)
		to.Data, to.Type, to.Immutable = from.Data, from.Type, from.Immutable
	case *corev1.ConfigMap:
		to := copied.(*corev1.ConfigMap)
		to.Data, to.BinaryData, to.Immutable = from.Data, from.BinaryData, from.Immutable
	}
	copied.SetLabels(mergeMaps(copied.GetLabels(), t.object.GetLabels()))
	copied.SetAnnotations(mergeMaps(copied.GetAnnotations(), t.object.GetAnnotations()))
	finalizers := copied.GetFinalizers()
	for _, f := range t.object.GetFinalizers() {
		if !slices.Contains(finalizers, f) {
			finalizers = append(finalizers, f)
		}
	}
	copied.SetFinalizers(finalizers)
	return !equality.Semantic.DeepEqual(before, copied)
}

// mustReplace reports whether the API server would refuse the update of a copy: the type of a Secret cannot change, nor the data of
// an immutable object.
func (t template) mustReplace(copied client.Object) bool {
	isFixed := func(was, wanted *bool) bool { return ptr.Deref(was, false) && !ptr.Deref(wanted, false) }
	switch want := t.object.(type) {
	case *corev1.Secret:
		is := copied.(*corev1.Secret)
		return is.Type != want.Type || isFixed(is.Immutable, want.Immutable) ||
			ptr.Deref(is.Immutable, false) && !equality.Semantic.DeepEqual(is.Data, want.Data)
	case *corev1.ConfigMap:
		is := copied.(*corev1.ConfigMap)
		return isFixed(is.Immutable, want.Immutable) ||
			ptr.Deref(is.Immutable, false) && !(equality.Semantic.DeepEqual(is.Data, want.Data) && equality.Semantic.DeepEqual(is.BinaryData, want.BinaryData))
	}
	return false
}

// mergeMaps lays one map over another.
func mergeMaps(lower, upper map[string]string) map[string]string {
	if len(upper) == 0 {
		return lower
	}
	out := maps.Clone(lower)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, upper)
	return out
}
