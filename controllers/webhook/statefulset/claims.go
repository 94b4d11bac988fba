// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// defaultClassKey is the annotation of the storage class for claims that name none.
const defaultClassKey = "storageclass.kubernetes.io/is-default-class"

// validateClaims allows only changes of the size of claim templates, if claims follow their templates. An unchanged
// template is not checked.
//
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
func (v validator) validateClaims(ctx context.Context, set, old *v1beta1.StatefulSet, path *field.Path, found *rules.Findings) {
	if !v.gates.AutoResizePVC || set.Spec.VolumeClaimUpdateStrategy.Type != v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType {
		return
	}
	before := map[string]*corev1.PersistentVolumeClaim{}
	for i := range old.Spec.VolumeClaimTemplates {
		before[old.Spec.VolumeClaimTemplates[i].Name] = &old.Spec.VolumeClaimTemplates[i]
	}
	if len(before) != len(set.Spec.VolumeClaimTemplates) {
		found.AddErrors(field.Forbidden(path, "with volumeClaimUpdateStrategy OnPodRollingUpdate no claim can be added or removed"))
		return
	}
	for i := range set.Spec.VolumeClaimTemplates {
		claim := &set.Spec.VolumeClaimTemplates[i]
		was := before[claim.Name]
		if was == nil {
			found.AddErrors(field.Invalid(path.Index(i).Child("metadata", "name"), claim.Name, "with volumeClaimUpdateStrategy OnPodRollingUpdate no claim can be added or renamed"))
			continue
		}
		v.validateClaim(ctx, claim, was, path.Index(i).Child("spec"), found)
	}
}

func (v validator) validateClaim(ctx context.Context, claim, was *corev1.PersistentVolumeClaim, path *field.Path, found *rules.Findings) {
	is, old := claim.DeepCopy(), was.DeepCopy()
	v.templates.ApplyToClaim(is)
	v.templates.ApplyToClaim(old)
	size := is.Spec.Resources.Requests[corev1.ResourceStorage]
	grows := size.Cmp(old.Spec.Resources.Requests[corev1.ResourceStorage]) > 0
	is.Spec.Resources, old.Spec.Resources = corev1.VolumeResourceRequirements{}, corev1.VolumeResourceRequirements{}
	if !equality.Semantic.DeepEqual(is.Spec, old.Spec) {
		found.AddErrors(field.Forbidden(path, "with volumeClaimUpdateStrategy OnPodRollingUpdate only the size of a claim can be changed"))
		return
	}
	if !grows {
		return
	}
	class, err := v.findStorageClass(ctx, claim.Spec.StorageClassName)
	switch {
	case err != nil:
		found.AddErrors(field.InternalError(path.Child("storageClassName"), err))
	case class == nil:
		found.AddErrors(field.NotFound(path.Child("storageClassName"), ptr.Deref(claim.Spec.StorageClassName, "the default class")))
	case class.AllowVolumeExpansion != nil && !*class.AllowVolumeExpansion:
		found.AddErrors(field.Invalid(path.Child("resources", "requests", "storage"), size.String(), "storage class "+class.Name+" does not let volumes grow"))
	}
}

// findStorageClass returns the storage class with a name or, without a name, the newest default one; nil if
// there is none.
func (v validator) findStorageClass(ctx context.Context, name *string) (*storagev1.StorageClass, error) {
	if name != nil && *name != "" {
		class := &storagev1.StorageClass{}
		err := v.reader.Get(ctx, types.NamespacedName{Name: *name}, class)
		if apierrors.IsNotFound(err) {
			return nil, nil
		} else if err != nil {
			return nil, fmt.Errorf("finding storage class %s: %w", *name, err)
		}
		return class, nil
	}
	classes := &storagev1.StorageClassList{}
	if err := v.reader.List(ctx, classes); err != nil {
		return nil, fmt.Errorf("finding the default storage class: %w", err)
	}
	var newest *storagev1.StorageClass
	for i := range classes.Items {
		class := &classes.Items[i]
		if class.Annotations[defaultClassKey] == "true" && (newest == nil || newest.CreationTimestamp.Before(&class.CreationTimestamp)) {
			newest = class
		}
	}
	return newest, nil
}
