// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/redact"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

type validator struct {
	writer    client.Writer
	namespace string
}

func (v validator) validateSpec(ctx context.Context, distribution, old *v1beta1.ResourceDistribution, found *rules.Findings) {
	spec := field.NewPath("spec")
	validateTargets(&distribution.Spec.Targets, spec.Child("targets"), found)
	if old != nil && bytes.Equal(distribution.Spec.Resource.Raw, old.Spec.Resource.Raw) {
		return
	}
	path := spec.Child("resource")
	resource, ok := decodeResource(distribution.Spec.Resource.Raw, path, found)
	if !ok {
		return
	}
	kind := resource.GroupVersionKind().GroupKind()
	if !slices.Contains([]schema.GroupKind{{Kind: "Secret"}, {Kind: "ConfigMap"}}, kind) {
		found.AddErrors(field.Invalid(path, kind.String(), "unknown or unsupported resource GroupKind, must be Secret or ConfigMap"))
		return
	}
	if resource.GetName() == "" {
		found.AddErrors(field.Required(path.Child("metadata", "name"), ""))
		return
	}
	if old != nil && !sameObject(resource, old) {
		found.AddErrors(field.Forbidden(path, "resource apiVersion, kind, and name are immutable"))
		return
	}
	contents := redact.Contents{}
	isSecret := kind.Kind == "Secret"
	if isSecret {
		contents = redact.ContentsOfJSON(distribution.Spec.Resource.Raw)
	}
	v.tryCreation(ctx, trial{resource, isSecret, contents}, path, found)
}

// trial is an object that is created as a dry run.
type trial struct {
	object   *unstructured.Unstructured
	isSecret bool
	contents redact.Contents
}

func decodeResource(raw []byte, path *field.Path, found *rules.Findings) (*unstructured.Unstructured, bool) {
	object := &unstructured.Unstructured{}
	if text := string(bytes.TrimSpace(raw)); text == "" || text == "null" || text == "{}" {
		found.AddErrors(field.Required(path, "must be a complete Secret or ConfigMap"))
		return nil, false
	}
	if err := object.UnmarshalJSON(raw); err != nil { // the error would have the whole object
		of := metav1.TypeMeta{}
		if json.Unmarshal(raw, &of) == nil && of.Kind == "" {
			found.AddErrors(field.Invalid(path, field.OmitValueType{}, "must be a complete Secret or ConfigMap: Object 'Kind' is missing"))
		} else {
			found.AddErrors(field.Invalid(path, field.OmitValueType{}, "must be a complete Secret or ConfigMap"))
		}
		return nil, false
	}
	if object.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Secret") {
		return object, true
	}
	if err := json.Unmarshal(raw, &corev1.Secret{}); err != nil {
		found.AddErrors(field.Invalid(path, field.OmitValueType{}, redact.DecodeError("Secret", err).Error()))
		return nil, false
	}
	return object, true
}

// sameObject reports whether both resources are the same object. It is true if the old one cannot be read, so
// that it can be replaced.
func sameObject(resource *unstructured.Unstructured, old *v1beta1.ResourceDistribution) bool {
	before := &unstructured.Unstructured{}
	if err := before.UnmarshalJSON(old.Spec.Resource.Raw); err != nil {
		return true
	}
	return before.GetAPIVersion() == resource.GetAPIVersion() && before.GetKind() == resource.GetKind() && before.GetName() == resource.GetName()
}

// tryCreation creates the object as a dry run. It is no error if the object exists. A quota may be exhausted, and an installation may
// give the manager fewer permissions: an object that the manager may not create now gets a warning.
//
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=create
func (v validator) tryCreation(ctx context.Context, t trial, path *field.Path, found *rules.Findings) {
	resource := t.object.DeepCopy()
	resource.SetNamespace(v.namespace)
	err := v.writer.Create(ctx, resource, client.DryRunAll)
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
	case apierrors.IsForbidden(err):
		found.AddWarning(path, "%s", t.concealSecret("it was not tried", err))
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		found.AddErrors(t.mistakesAtFields(err, path)...)
	default:
		found.AddErrors(field.InternalError(path, t.concealSecret("trying to create it", err)))
	}
}

func (t trial) concealSecret(doing string, err error) error {
	if t.isSecret {
		return t.contents.Error(doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// mistakesAtFields returns the errors of the object, at their fields if the API server names them. Values are left out, and for a Secret
// also all texts of the API server.
func (t trial) mistakesAtFields(err error, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			at := path
			if cause.Type != metav1.CauseTypeUnexpectedServerResponse && cause.Field != "" && cause.Field != "<nil>" {
				at = path.Child(cause.Field)
			}
			message := cause.Message
			if t.isSecret {
				message = redact.Describe(cause.Type)
			}
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, message))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, t.concealSecret("the API server refuses it", err).Error()))
	}
	return errs
}
