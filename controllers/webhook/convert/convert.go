// SPDX-License-Identifier: Apache-2.0

// Package convert serves /convert: it converts custom resources between versions.
//
// controller-runtime has such a handler, but it decodes the whole object, and drops fields that this release does not
// have: a newer cluster would lose new fields of pods with every write. Regatta's CRDs have no schema for pod templates,
// and no conversion reads them, so this handler passes them through unchanged, at no cost.
package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	casejson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// Handler converts the kinds of a scheme that have a hub.
type Handler struct {
	Scheme *runtime.Scheme
	// Opaque are the fields of spec, by kind, that are the same in all versions and pass untouched.
	Opaque map[schema.GroupKind][]string
}

var _ http.Handler = &Handler{}

// ServeHTTP answers a ConversionReview. Reviews of v1 and v1beta1 have the same form, so the response has the version of
// the request.
func (h *Handler) ServeHTTP(writer http.ResponseWriter, httpRequest *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(httpRequest.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(writer, "The body must be a ConversionReview with a request.", http.StatusBadRequest)
		return
	}
	review.Response = h.convertObjects(review.Request)
	review.Request = nil
	writer.Header().Set("Content-Type", "application/json")
	// If the API server has closed the connection, it sends the review again.
	_ = json.NewEncoder(writer).Encode(review)
}

// convertObjects converts all objects or none.
func (h *Handler) convertObjects(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	objects := make([]runtime.RawExtension, 0, len(request.Objects))
	for _, object := range request.Objects {
		raw, err := h.ConvertObject(object.Raw, request.DesiredAPIVersion)
		if err != nil {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			return response
		}
		objects = append(objects, runtime.RawExtension{Raw: raw})
	}
	response.ConvertedObjects = objects
	return response
}

// ConvertObject converts one object to another version.
func (h *Handler) ConvertObject(raw []byte, apiVersion string) ([]byte, error) {
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, fmt.Errorf("reading the object to convert: %w", err)
	}
	if meta.APIVersion == apiVersion {
		return raw, nil
	}
	converted, err := h.convertVersion(raw, meta.GroupVersionKind(), schema.FromAPIVersionAndKind(apiVersion, meta.Kind))
	if err != nil {
		return nil, fmt.Errorf("converting %s %s/%s from %s to %s: %w", meta.Kind, meta.Namespace, meta.Name, meta.APIVersion, apiVersion, err)
	}
	return converted, nil
}

func (h *Handler) convertVersion(raw []byte, from, to schema.GroupVersionKind) ([]byte, error) {
	if from.GroupKind() != to.GroupKind() {
		return nil, fmt.Errorf("%s is another kind", to.GroupKind())
	}
	source, errFrom := h.Scheme.New(from)
	target, errTo := h.Scheme.New(to)
	if err := errors.Join(errFrom, errTo); err != nil {
		return nil, err
	}
	rest, kept, err := extractOpaque(raw, h.Opaque[from.GroupKind()])
	if err != nil {
		return nil, err
	}
	if err := casejson.Unmarshal(rest, source); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	if err := viaHub(source, target); err != nil {
		return nil, err
	}
	target.GetObjectKind().SetGroupVersionKind(to)
	converted, err := json.Marshal(target)
	if err != nil {
		return nil, fmt.Errorf("writing the object: %w", err)
	}
	return restoreOpaque(converted, kept, h.Opaque[from.GroupKind()])
}

// viaHub converts between the hub and another version: no kind has three versions.
func viaHub(source, target runtime.Object) error {
	if spoke, ok := source.(conversion.Convertible); ok {
		if hub, ok := target.(conversion.Hub); ok {
			return spoke.ConvertTo(hub)
		}
	}
	if spoke, ok := target.(conversion.Convertible); ok {
		if hub, ok := source.(conversion.Hub); ok {
			return spoke.ConvertFrom(hub)
		}
	}
	return errors.New("there is no conversion between these versions")
}
