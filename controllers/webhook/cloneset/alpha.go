// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// validateAlpha applies the rules that only v1alpha1 has.
func (v validator) validateAlpha(ctx context.Context, set, old *v1alpha1.CloneSet, found *rules.Findings) {
	spec := &set.Spec
	v.validatePodsToDelete(ctx, set, old, found)
	validateDeadline(spec.ProgressDeadlineSeconds, spec.MinReadySeconds, found)
	if old != nil && spec.UpdateStrategy.Type == v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType {
		if message := v.onlyImages(&old.Spec.Template, &spec.Template); message != "" {
			found.AddErrors(field.Invalid(field.NewPath("spec", "template", "spec"), field.OmitValueType{}, message))
		}
	}
	warnOfIgnored(spec.UpdateStrategy.InPlaceUpdateStrategy, field.NewPath("spec", "updateStrategy", "inPlaceUpdateStrategy"), found)
}

// validateAlphaType refuses OnDelete, which v1alpha1 does not offer, unless a v1beta1 user has set it before: otherwise
// v1alpha1 users could not change any other field.
func validateAlphaType(set *v1alpha1.CloneSet, old *object, found *rules.Findings) {
	kind := set.Spec.UpdateStrategy.Type
	if old != nil && kind == asAlpha(old).Spec.UpdateStrategy.Type {
		return
	}
	rules.OneOf(found, kind, field.NewPath("spec", "updateStrategy", "type"), v1alpha1.RecreateCloneSetUpdateStrategyType,
		v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType, v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType)
}

// validatePodsToDelete requires that new names are those of pods of this CloneSet. The pods of old names may be
// gone meanwhile.
func (v validator) validatePodsToDelete(ctx context.Context, set, old *v1alpha1.CloneSet, found *rules.Findings) {
	path := field.NewPath("spec", "scaleStrategy", "podsToDelete")
	for i, name := range set.Spec.ScaleStrategy.PodsToDelete {
		if old != nil && slices.Contains(old.Spec.ScaleStrategy.PodsToDelete, name) {
			continue
		}
		pod := &corev1.Pod{}
		err := v.pods.Get(ctx, types.NamespacedName{Namespace: set.Namespace, Name: name}, pod)
		switch {
		case apierrors.IsNotFound(err):
			found.AddErrors(field.NotFound(path.Index(i), name))
		case err != nil:
			found.AddErrors(field.InternalError(path.Index(i), fmt.Errorf("finding pod %s: %w", name, err)))
		case pod.DeletionTimestamp != nil:
			found.AddErrors(field.Invalid(path.Index(i), name, "the pod is being deleted already"))
		case !metav1.IsControlledBy(pod, set):
			found.AddErrors(field.Invalid(path.Index(i), name, "the pod is not owned by this CloneSet"))
		}
	}
}

// validateDeadline requires a deadline longer than minReadySeconds: a rollout makes no progress before its first
// pod has been ready for that long.
func validateDeadline(deadline *int32, minReadySeconds int32, found *rules.Findings) {
	path := field.NewPath("spec", "progressDeadlineSeconds")
	if deadline == nil || *deadline == math.MaxInt32 {
		return
	}
	errs := apivalidation.ValidateNonnegativeField(int64(*deadline), path)
	if len(errs) == 0 && *deadline <= minReadySeconds {
		errs = append(errs, field.Invalid(path, *deadline, "must be greater than minReadySeconds"))
	}
	found.AddErrors(errs...)
}

// onlyImages returns what a template changes besides images of containers, which are the only change that InPlaceOnly
// allows. Both templates are compared with their defaults set, so that a default is no change.
func (v validator) onlyImages(old, template *corev1.PodTemplateSpec) string {
	old, template = old.DeepCopy(), template.DeepCopy()
	v.templates.ApplyDefaults(old)
	v.templates.ApplyDefaults(template)
	operation, path, err := rules.OnlyImages(&old.Spec, &template.Spec)
	switch {
	case err != nil:
		return "the template can not be compared with the old one: " + err.Error()
	case operation != "":
		return fmt.Sprintf("only allowed to update images in spec for InPlaceOnly, but found %s %s", operation, path)
	}
	return ""
}

// warnOfIgnored warns about fields that are in the schema of v1alpha1, but were never read: only the annotations
// worked (CS-20).
func warnOfIgnored(strategy *v1beta1.InPlaceUpdateStrategy, path *field.Path, found *rules.Findings) {
	if strategy == nil {
		return
	}
	for _, ignored := range []struct {
		child, annotation string
		set               bool
	}{
		{"imagePreDownloadParallelism", v1beta1.ImagePreDownloadParallelismKey, strategy.ImagePreDownloadParallelism != nil},
		{"imagePreDownloadTimeoutSeconds", v1beta1.ImagePreDownloadTimeoutSecondsKey, strategy.ImagePreDownloadTimeoutSeconds != nil},
		{"imagePreDownloadMinUpdatedReadyPods", v1beta1.ImagePreDownloadMinUpdatedReadyPodsKey, strategy.ImagePreDownloadMinUpdatedReadyPods != nil},
	} {
		if ignored.set {
			found.AddWarning(path.Child(ignored.child), "v1alpha1 ignores this field; set the annotation %s, or use v1beta1.", ignored.annotation)
		}
	}
}
