package cloneset

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// validateAlpha has the rules that only v1alpha1 has.
func (v *Validator) validateAlpha(ctx context.Context, set, old *object, found *findings) {
	spec := &set.alpha.Spec
	v.validatePodsToDelete(ctx, set, old, found)
	validateDeadline(spec.ProgressDeadlineSeconds, spec.MinReadySeconds, found)
	if old != nil && spec.UpdateStrategy.Type == v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType {
		if message := v.onlyImages(&old.alpha.Spec.Template, &spec.Template); message != "" {
			found.add(field.Invalid(field.NewPath("spec", "template", "spec"), field.OmitValueType{}, message))
		}
	}
	warnOfIgnored(spec.UpdateStrategy.InPlaceUpdateStrategy, set.paths().rolling.Child("inPlaceUpdateStrategy"), found)
}

// validateAlphaType refuses OnDelete, which v1alpha1 users were never meant to have, but lets it stand where a v1beta1 user
// has set it: they could not change anything else otherwise.
func validateAlphaType(set, old *object, found *findings) {
	kind := set.alpha.Spec.UpdateStrategy.Type
	if old != nil && kind == old.alpha.Spec.UpdateStrategy.Type {
		return
	}
	oneOf(kind, set.paths().kind, found, v1alpha1.RecreateCloneSetUpdateStrategyType,
		v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType, v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType)
}

// validatePodsToDelete wants names that are new to be pods of this CloneSet. Old ones may be gone meanwhile.
func (v *Validator) validatePodsToDelete(ctx context.Context, set, old *object, found *findings) {
	path := field.NewPath("spec", "scaleStrategy", "podsToDelete")
	for i, name := range set.alpha.Spec.ScaleStrategy.PodsToDelete {
		if old != nil && slices.Contains(old.alpha.Spec.ScaleStrategy.PodsToDelete, name) {
			continue
		}
		pod := &corev1.Pod{}
		err := v.Pods.Get(ctx, types.NamespacedName{Namespace: set.alpha.Namespace, Name: name}, pod)
		switch {
		case apierrors.IsNotFound(err):
			found.add(field.NotFound(path.Index(i), name))
		case err != nil:
			found.add(field.InternalError(path.Index(i), fmt.Errorf("finding pod %s: %w", name, err)))
		case pod.DeletionTimestamp != nil:
			found.add(field.Invalid(path.Index(i), name, "the pod is being deleted already"))
		case !metav1.IsControlledBy(pod, set.alpha):
			found.add(field.Invalid(path.Index(i), name, "the pod is not owned by this CloneSet"))
		}
	}
}

// validateDeadline: a rollout makes no progress before its first pod has been ready for minReadySeconds.
func validateDeadline(deadline *int32, minReadySeconds int32, found *findings) {
	path := field.NewPath("spec", "progressDeadlineSeconds")
	if deadline == nil || *deadline == math.MaxInt32 {
		return
	}
	errs := apivalidation.ValidateNonnegativeField(int64(*deadline), path)
	if len(errs) == 0 && *deadline <= minReadySeconds {
		errs = append(errs, field.Invalid(path, *deadline, "must be greater than minReadySeconds"))
	}
	found.add(errs...)
}

// onlyImages says what changes besides images of containers, which is all that InPlaceOnly can do. Both templates are
// compared with their defaults, so that a field which the defaults fill in is no change.
func (v *Validator) onlyImages(old, template *corev1.PodTemplateSpec) string {
	old, template = old.DeepCopy(), template.DeepCopy()
	v.Templates.Apply(old)
	v.Templates.Apply(template)
	before, errBefore := json.Marshal(old.Spec)
	after, errAfter := json.Marshal(template.Spec)
	if errBefore != nil || errAfter != nil {
		return "the template can not be compared with the old one"
	}
	patch, err := jsonpatch.CreatePatch(before, after)
	if err != nil {
		return "the template can not be compared with the old one: " + err.Error()
	}
	image := regexp.MustCompile(`^/containers/[0-9]+/image$`)
	for _, operation := range patch {
		if operation.Operation != "replace" || !image.MatchString(operation.Path) {
			return fmt.Sprintf("only allowed to update images in spec for InPlaceOnly, but found %s %s", operation.Operation, operation.Path)
		}
	}
	return ""
}

// warnOfIgnored: these fields are in the schema of v1alpha1, but only the annotations ever worked (features 2).
func warnOfIgnored(strategy *v1beta1.InPlaceUpdateStrategy, path *field.Path, found *findings) {
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
			found.warn(path.Child(ignored.child), "v1alpha1 ignores this field; set the annotation %s, or use v1beta1.", ignored.annotation)
		}
	}
}
