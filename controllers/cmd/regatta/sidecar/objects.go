// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/manifest"
	webhook "github.com/regatta-sh/regatta/controllers/webhook/sidecarset"
)

// objects are the objects of a cluster that files have. A namespace that is not in the files has no labels.
type objects struct {
	sets       []kruise.SidecarSet
	revisions  []appsv1.ControllerRevision
	namespaces map[string]map[string]string // labels
	client.Reader
}

// readObjects adds the objects of a file.
func (o *objects) readObjects(path string) error { return manifest.ForEachObject(path, o.addObject) }

func (o *objects) addObject(u *unstructured.Unstructured) error {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	switch kind := u.GroupVersionKind(); kind {
	case kruise.GroupVersion.WithKind("SidecarSet"), v1alpha1.GroupVersion.WithKind("SidecarSet"):
		set, err := sidecarSet(raw, kind.Version)
		if err != nil {
			return fmt.Errorf("SidecarSet %s: %w", u.GetName(), err)
		}
		o.sets = append(o.sets, *set)
	case appsv1.SchemeGroupVersion.WithKind("ControllerRevision"):
		r := appsv1.ControllerRevision{}
		if err := json.Unmarshal(raw, &r); err != nil {
			return fmt.Errorf("ControllerRevision %s: %w", u.GetName(), err)
		}
		o.revisions = append(o.revisions, r)
	case corev1.SchemeGroupVersion.WithKind("Namespace"):
		o.namespaces[u.GetName()] = u.GetLabels()
	default:
		return fmt.Errorf("there is a %q; want SidecarSets, their ControllerRevisions and Namespaces", kind.Kind)
	}
	return nil
}

// sidecarSet reads a SidecarSet as an API server stores it, with its defaults.
func sidecarSet(raw []byte, version string) (*kruise.SidecarSet, error) {
	set := &kruise.SidecarSet{}
	if version == v1alpha1.GroupVersion.Version {
		old := &v1alpha1.SidecarSet{}
		if err := json.Unmarshal(raw, old); err != nil {
			return nil, err
		}
		if err := old.ConvertTo(set); err != nil {
			return nil, err
		}
	} else if err := json.Unmarshal(raw, set); err != nil {
		return nil, err
	}
	webhook.Default(set)
	return set, nil
}

// List implements client.Reader for the objects of the files.
func (o *objects) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	by := client.ListOptions{LabelSelector: labels.Everything()}
	by.ApplyOptions(opts)
	switch list := list.(type) {
	case *kruise.SidecarSetList:
		list.Items = o.sets
	case *appsv1.ControllerRevisionList:
		for _, r := range o.revisions {
			if by.LabelSelector.Matches(labels.Set(r.Labels)) {
				list.Items = append(list.Items, r)
			}
		}
	default:
		return fmt.Errorf("listing %T: files have none", list)
	}
	return nil
}

// Get implements client.Reader for namespaces.
func (o *objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found, ok := into.(*metav1.PartialObjectMetadata)
	if !ok || found.Kind != "Namespace" {
		return apierrors.NewNotFound(corev1.Resource("objects"), key.Name)
	}
	found.Name, found.Labels = key.Name, o.namespaces[key.Name]
	return nil
}
