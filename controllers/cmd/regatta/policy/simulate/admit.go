// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/webhook/review"
)

// admitWorkload does what a cluster does with a workload that is applied: it sets defaults, validates,
// and reads either version.
func admitWorkload(k kind, raw []byte, version string) (workload, error) {
	response := k.webhooks.MutatingHandler().Handle(context.Background(), k.admissionRequest(version, "", raw))
	raw, err := review.ApplyPatches(raw, response)
	if err != nil {
		return workload{}, fmt.Errorf("filling in defaults: %w", err)
	}
	w, err := decodeWorkload(k, raw, version)
	if err != nil {
		return workload{}, err
	}
	return w, w.validateWorkload()
}

// decodeWorkload reads either version as it is.
func decodeWorkload(k kind, raw []byte, version string) (workload, error) {
	object := k.New()
	if version == v1alpha1.GroupVersion.Version {
		old := k.older()
		if err := json.Unmarshal(raw, old); err != nil {
			return workload{}, err
		}
		if err := old.ConvertTo(object.(conversion.Hub)); err != nil {
			return workload{}, err
		}
	} else if err := json.Unmarshal(raw, object); err != nil {
		return workload{}, err
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return workload{k, object}, nil
}

// validateWorkload refuses a workload that the webhook refuses.
func (w workload) validateWorkload() error {
	raw, err := json.Marshal(w.Object)
	if err != nil {
		return err
	}
	response := w.webhooks.ValidatingHandler().Handle(context.Background(), w.admissionRequest(w.Version, w.GetName(), raw))
	if response.Allowed {
		return nil
	}
	return errors.New(response.Result.Message)
}

func (k kind) admissionRequest(version, name string, raw []byte) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Name: name, Kind: metav1.GroupVersionKind{Group: k.Group, Version: version, Kind: k.Kind},
		Object: runtime.RawExtension{Raw: raw},
	}}
}
