// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/api"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

// ServedVersions are the versions of each kind, the oldest first, by group/kind.
func ServedVersions() map[string][]string {
	out := map[string][]string{}
	for gvk := range persistedKinds() {
		key := gvk.Group + "/" + gvk.Kind
		out[key] = append(out[key], gvk.Version)
	}
	for key := range out {
		slices.Sort(out[key])
	}
	return out
}

// CRDResource is the plural and the group of a CRD of the groups of OpenKruise, by its name.
func CRDResource(name string) (schema.GroupResource, bool) {
	r := schema.ParseGroupResource(name)
	return r, r.Group == "apps.kruise.io" || r.Group == "policy.kruise.io"
}

// crdList is the kind of a list of CRDs.
func crdList() schema.GroupVersionKind {
	return apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList")
}

// persistedKinds are the kinds that have objects.
func persistedKinds() map[schema.GroupVersionKind]bool {
	s, out := runtime.NewScheme(), map[schema.GroupVersionKind]bool{}
	if api.AddToScheme(s) != nil {
		return out
	}
	for gvk := range s.AllKnownTypes() {
		if _, is := s.AllKnownTypes()[gvk.GroupVersion().WithKind(gvk.Kind+"List")]; is && strings.HasSuffix(gvk.Group, ".kruise.io") {
			out[gvk] = true
		}
	}
	return out
}

// checkObjects reports the fields of objects that Regatta does not have, and the rollouts that are under way.
func (l *look) checkObjects(ctx context.Context) error {
	s, err := NewScheme()
	if err != nil {
		return err
	}
	known := ServedVersions()
	for _, key := range slices.Sorted(maps.Keys(known)) {
		group, kind, _ := strings.Cut(key, "/")
		list := &unstructured.UnstructuredList{}
		gv := schema.GroupVersion{Group: group, Version: known[key][len(known[key])-1]}
		list.SetGroupVersionKind(gv.WithKind(kind + "List"))
		err := l.List(ctx, list, client.Limit(0))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // not installed, or not in this version
		}
		if err != nil {
			return fmt.Errorf("listing objects of kind %s: %w", kind, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			l.checkUnknownFields(s, gv.WithKind(kind), o)
			if err := l.noteRollout(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// objectName returns the name of an object as users write it.
func objectName(o client.Object) string {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if ns := o.GetNamespace(); ns != "" {
		return kind + " " + ns + "/" + o.GetName()
	}
	return kind + " " + o.GetName()
}

// checkUnknownFields reports which fields of the spec the next write would drop.
func (l *look) checkUnknownFields(s *runtime.Scheme, gvk schema.GroupVersionKind, o *unstructured.Unstructured) {
	typed, err := s.New(gvk)
	if err != nil {
		return
	}
	spec, err := yaml.Marshal(map[string]any{"spec": o.Object["spec"]})
	if err != nil {
		return
	}
	if err := yaml.UnmarshalStrict(spec, typed); err != nil {
		text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "), "while decoding JSON: ")
		l.addRow(Row{Effect: Differs, Object: objectName(o), Field: "spec", There: text, Here: "no such field: dropped at the next write", Do: "take it out"})
	}
}

// noteRollout notes a rollout that is under way.
func (l *look) noteRollout(o *unstructured.Unstructured) error {
	w, ok := kinds.FindByGroupKind(o.GroupVersionKind().GroupKind())
	if !ok {
		return nil
	}
	typed, err := w.Read(o)
	if err != nil {
		return fmt.Errorf("reading %s: %w", objectName(o), err)
	}
	v := w.View(typed)
	if v.Wanted > 0 && v.Updated < v.Wanted {
		l.addRow(Row{Effect: Note, Object: objectName(o), Field: "status", There: fmt.Sprintf("%d of %d pods updated", v.Updated, v.Wanted), Here: "goes on from there"})
	}
	return nil
}
