// SPDX-License-Identifier: Apache-2.0

// Package review makes the responses of admission handlers.
package review

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	merge "github.com/evanphx/json-patch/v5"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// RefuseInvalid refuses an object as the API server refuses its own objects: with code 422, and each field as a cause that
// tools can read.
func RefuseInvalid(request *admission.Request, errs field.ErrorList) admission.Response {
	kind := schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}
	status := apierrors.NewInvalid(kind, request.Name, errs).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}
}

// PatchResponse changes the user's object only where before and after differ. Decoding and encoding alone would change
// more: it drops fields that this release does not have, formats quantities differently and adds empty objects. GitOps
// tools would revert such changes.
func PatchResponse(raw []byte, before, after any) admission.Response {
	noise, err := patchTo(raw, before)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	patch, err := patchTo(raw, after)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if len(noise) > 0 { // an API server with the same types formats an object in the same way
		known := sets.New[string]()
		for _, operation := range noise {
			known.Insert(operation.Json())
		}
		patch = slices.DeleteFunc(patch, func(operation jsonpatch.Operation) bool { return known.Has(operation.Json()) })
	}
	if len(patch) == 0 {
		return admission.Allowed("")
	}
	return admission.Patched("", patch...)
}

// ApplyPatches applies the patches of a response to an object, as an API server does.
func ApplyPatches(raw []byte, answer admission.Response) ([]byte, error) {
	if len(answer.Patches) == 0 {
		return raw, nil
	}
	encoded, err := json.Marshal(answer.Patches)
	if err != nil {
		return nil, fmt.Errorf("encoding the patches of an answer: %w", err)
	}
	patch, err := merge.DecodePatch(encoded)
	if err != nil {
		return nil, fmt.Errorf("reading the patches of an answer: %w", err)
	}
	if raw, err = patch.Apply(raw); err != nil {
		return nil, fmt.Errorf("applying the patches of an answer: %w", err)
	}
	return raw, nil
}

func patchTo(raw []byte, object any) ([]jsonpatch.Operation, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", object, err)
	}
	if bytes.Equal(raw, encoded) {
		return nil, nil
	}
	patch, err := jsonpatch.CreatePatch(raw, encoded)
	if err != nil {
		return nil, fmt.Errorf("comparing with %T: %w", object, err)
	}
	return patch, nil
}

// RefuseUnreadable refuses an object that cannot be decoded, and names the field if it is known.
func RefuseUnreadable(request *admission.Request, err error) admission.Response {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		path := field.NewPath(wrong.Field)
		return RefuseInvalid(request, field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, fmt.Sprintf("must be %s, not a %s", jsonTypeName(wrong.Type), wrong.Value))})
	}
	return admission.Errored(http.StatusBadRequest, err)
}

// jsonTypeName is the name of a type in JSON.
func jsonTypeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Pointer:
		return jsonTypeName(t.Elem())
	}
	return "a number"
}
