// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

type validator struct {
	writer    client.Writer
	namespace string
}

func (v validator) validate(ctx context.Context, distribution, old *v1beta1.ResourceDistribution, found *rules.Findings) {
	spec := field.NewPath("spec")
	validateTargets(&distribution.Spec.Targets, spec.Child("targets"), found)
	if old != nil && bytes.Equal(distribution.Spec.Resource.Raw, old.Spec.Resource.Raw) {
		return
	}
	path := spec.Child("resource")
	resource, ok := decode(distribution.Spec.Resource.Raw, path, found)
	if !ok {
		return
	}
	kind := resource.GroupVersionKind().GroupKind()
	if !slices.Contains([]schema.GroupKind{{Kind: "Secret"}, {Kind: "ConfigMap"}}, kind) {
		found.Add(field.Invalid(path, kind.String(), "unknown or unsupported resource GroupKind, must be Secret or ConfigMap"))
		return
	}
	if resource.GetName() == "" {
		found.Add(field.Required(path.Child("metadata", "name"), ""))
		return
	}
	if old != nil && !sameObject(resource, old) {
		found.Add(field.Forbidden(path, "resource apiVersion, kind, and name are immutable"))
		return
	}
	v.try(ctx, resource, path, found)
}

func decode(raw []byte, path *field.Path, found *rules.Findings) (*unstructured.Unstructured, bool) {
	object := &unstructured.Unstructured{}
	if text := string(bytes.TrimSpace(raw)); text == "" || text == "null" || text == "{}" {
		found.Add(field.Required(path, "must be a complete Secret or ConfigMap"))
		return nil, false
	}
	if err := object.UnmarshalJSON(raw); err != nil {
		found.Add(field.Invalid(path, field.OmitValueType{}, "must be a complete Secret or ConfigMap: "+err.Error()))
		return nil, false
	}
	return object, true
}

// sameObject is true for an old one that cannot be read: whatever takes its place is better.
func sameObject(resource *unstructured.Unstructured, old *v1beta1.ResourceDistribution) bool {
	before := &unstructured.Unstructured{}
	if err := before.UnmarshalJSON(old.Spec.Resource.Raw); err != nil {
		return true
	}
	return before.GetAPIVersion() == resource.GetAPIVersion() && before.GetKind() == resource.GetKind() && before.GetName() == resource.GetName()
}

// try asks the API server to create the object, and not to keep it. An object that exists there is no mistake. A quota may be
// used up, and an installation may grant the manager less: what the manager may not create now is a warning.
//
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=create
func (v validator) try(ctx context.Context, resource *unstructured.Unstructured, path *field.Path, found *rules.Findings) {
	resource = resource.DeepCopy()
	resource.SetNamespace(v.namespace)
	err := v.writer.Create(ctx, resource, client.DryRunAll)
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
	case apierrors.IsForbidden(err):
		found.Warn(path, "it was not tried: %s", err)
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		found.Add(mistakes(err, path)...)
	default:
		found.Add(field.InternalError(path, fmt.Errorf("trying to create it: %w", err)))
	}
}

// mistakes are those of the object, at their fields if the API server names them. Values are left out: they may be secret.
func mistakes(err error, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			at := path
			if cause.Type != metav1.CauseTypeUnexpectedServerResponse && cause.Field != "" && cause.Field != "<nil>" {
				at = path.Child(cause.Field)
			}
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, cause.Message))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
	}
	return errs
}
