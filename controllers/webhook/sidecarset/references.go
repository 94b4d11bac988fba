// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// validateCanary requires that a canary names one SidecarSet that is no canary itself, and does not update pods
// of it.
func (o Options) validateCanary(ctx context.Context, set, old *v1beta1.SidecarSet, found *rules.Findings) {
	if !isCanary(set) {
		return
	}
	if set.Spec.UpdateStrategy.Type != v1beta1.NotUpdateSidecarSetStrategyType {
		found.AddErrors(field.NotSupported(field.NewPath("spec", "updateStrategy", "type"), set.Spec.UpdateStrategy.Type,
			[]v1beta1.SidecarSetUpdateStrategyType{v1beta1.NotUpdateSidecarSetStrategyType}))
	}
	path, name := field.NewPath("metadata", "annotations").Key(v1beta1.SidecarSetBaseKey), baseOf(set)
	switch {
	case name == "":
		found.AddErrors(field.Required(path, "a canary names the SidecarSet that it stands in for"))
		return
	case name == set.Name:
		found.AddErrors(field.Invalid(path, name, "a canary can not stand in for itself"))
		return
	case old != nil && isCanary(old) && baseOf(old) == name:
		return
	case old != nil && isCanary(old):
		found.AddErrors(field.Forbidden(path, "is immutable"))
		return
	}
	base := &v1beta1.SidecarSet{}
	if err := o.Reader.Get(ctx, types.NamespacedName{Name: name}, base); apierrors.IsNotFound(err) {
		found.AddErrors(field.NotFound(path, name))
	} else if err != nil {
		found.AddErrors(field.InternalError(path, fmt.Errorf("finding SidecarSet %s: %w", name, err)))
	} else if isCanary(base) {
		found.AddErrors(field.Invalid(path, name, "is a canary itself"))
	}
}

// validateRevision requires that the named revision exists. If it is deleted later, the latest one is used.
func (o Options) validateRevision(ctx context.Context, set, old *v1beta1.SidecarSet, found *rules.Findings) {
	path, revision := field.NewPath("spec", "injectionStrategy", "revision"), set.Spec.InjectionStrategy.Revision
	if revision == nil || old != nil && equality.Semantic.DeepEqual(revision, old.Spec.InjectionStrategy.Revision) {
		return
	}
	exists, err := o.revisionExists(ctx, set.Name, ptr.Deref(revision.CustomVersion, ""), ptr.Deref(revision.RevisionName, ""))
	if err != nil {
		found.AddErrors(field.InternalError(path, err))
	} else if !exists {
		found.AddErrors(field.Invalid(path, field.OmitValueType{}, "Cannot find specific ControllerRevision"))
	}
}

func (o Options) revisionExists(ctx context.Context, set, version, name string) (bool, error) {
	if version != "" && len(validation.IsValidLabelValue(version)) == 0 {
		list := &appsv1.ControllerRevisionList{}
		err := o.Reader.List(ctx, list, client.InNamespace(o.Configuration.Namespace), client.MatchingLabels{
			v1beta1.SidecarSetNameKey: set, v1beta1.SidecarSetCustomVersionKey: version,
		})
		if err != nil {
			return false, fmt.Errorf("listing revisions: %w", err)
		}
		if len(list.Items) > 0 {
			return true, nil
		}
	}
	if name == "" {
		return false, nil
	}
	revision := &appsv1.ControllerRevision{}
	err := o.Reader.Get(ctx, types.NamespacedName{Namespace: o.Configuration.Namespace, Name: name}, revision)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finding revision %s: %w", name, err)
	}
	return revision.Labels[v1beta1.SidecarSetNameKey] == set, nil
}
