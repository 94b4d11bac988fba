// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// sidecarSetNamespaces is how v1alpha1 says which namespaces there are. It is kept in conversiondata.OlderKey where the one selector
// of the hub cannot tell it.
type sidecarSetNamespaces struct {
	Namespace         string                `json:"namespace,omitempty"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// effectiveSelector is what both fields mean: a namespace wins.
func (n sidecarSetNamespaces) effectiveSelector() *metav1.LabelSelector {
	if n.Namespace == "" {
		return n.NamespaceSelector
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: n.Namespace}}
}

// namespacesOf is the usual way to say in v1alpha1 what a selector means.
func namespacesOf(selector *metav1.LabelSelector) sidecarSetNamespaces {
	if selector != nil {
		named := sidecarSetNamespaces{Namespace: selector.MatchLabels[corev1.LabelMetadataName]}
		if named.Namespace != "" && equality.Semantic.DeepEqual(named.effectiveSelector(), selector) {
			return named
		}
	}
	return sidecarSetNamespaces{NamespaceSelector: selector}
}

func namespacesToHub(said sidecarSetNamespaces, meta *metav1.ObjectMeta) (*metav1.LabelSelector, error) {
	selector, kept := said.effectiveSelector(), said
	if equality.Semantic.DeepEqual(namespacesOf(selector), said) {
		kept = sidecarSetNamespaces{}
	}
	return selector, conversiondata.StoreFields(&meta.Annotations, conversiondata.OlderKey, kept)
}

func namespacesFromHub(selector *metav1.LabelSelector, meta *metav1.ObjectMeta) sidecarSetNamespaces {
	var kept sidecarSetNamespaces
	if conversiondata.RestoreFields(&meta.Annotations, conversiondata.OlderKey, &kept) && equality.Semantic.DeepEqual(kept.effectiveSelector(), selector) {
		return kept
	}
	return namespacesOf(selector)
}

// sidecarSetVersion is how the hub says its version. It is kept in conversiondata.NewerKey where the one label of v1alpha1 cannot
// tell it: the label need not be there, may say something else, and takes fewer characters.
type sidecarSetVersion struct {
	CustomVersion string  `json:"customVersion,omitempty"`
	Label         *string `json:"label,omitempty"`
}

// effectiveLabel is that of v1alpha1: the field wins.
func (v sidecarSetVersion) effectiveLabel() *string {
	switch {
	case v.Label != nil && *v.Label == v.CustomVersion:
		return v.Label
	case v.CustomVersion == "" || len(validation.IsValidLabelValue(v.CustomVersion)) > 0:
		return nil
	}
	return &v.CustomVersion
}

func versionToHub(meta *metav1.ObjectMeta) string {
	var label *string
	if value, ok := meta.Labels[v1beta1.SidecarSetCustomVersionKey]; ok {
		label = &value
	}
	var kept sidecarSetVersion
	if !conversiondata.RestoreFields(&meta.Annotations, conversiondata.NewerKey, &kept) || !ptr.Equal(kept.effectiveLabel(), label) {
		return ptr.Deref(label, "")
	}
	setVersionLabel(meta, kept.Label)
	return kept.CustomVersion
}

func versionFromHub(customVersion string, meta *metav1.ObjectMeta) error {
	said := sidecarSetVersion{CustomVersion: customVersion}
	if value, ok := meta.Labels[v1beta1.SidecarSetCustomVersionKey]; ok {
		said.Label = &value
	}
	label, kept := said.effectiveLabel(), said
	if ptr.Equal(label, said.Label) && ptr.Deref(label, "") == customVersion {
		kept = sidecarSetVersion{}
	}
	setVersionLabel(meta, label)
	return conversiondata.StoreFields(&meta.Annotations, conversiondata.NewerKey, kept)
}

func setVersionLabel(meta *metav1.ObjectMeta, value *string) {
	if value == nil {
		conversiondata.RemoveMetadata(&meta.Labels, v1beta1.SidecarSetCustomVersionKey)
	} else {
		conversiondata.SetMetadata(&meta.Labels, v1beta1.SidecarSetCustomVersionKey, *value)
	}
}
