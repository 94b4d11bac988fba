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
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/cloneset"
	"github.com/regatta-sh/regatta/controllers/webhook/review"
)

// admit does what a cluster does with a CloneSet that is applied: it fills in
// what was left out, refuses what is wrong, and reads either version.
func admit(raw []byte, version string) (*kruise.CloneSet, error) {
	response := cloneset.New(cloneset.Options{}).Defaulter().Handle(context.Background(), request(version, "", raw))
	raw, err := review.Applied(raw, response)
	if err != nil {
		return nil, fmt.Errorf("filling in defaults: %w", err)
	}
	set, err := decode(raw, version)
	if err != nil {
		return nil, err
	}
	return set, validate(set)
}

// decode reads either version as it is.
func decode(raw []byte, version string) (*kruise.CloneSet, error) {
	set := &kruise.CloneSet{}
	if version == v1alpha1.GroupVersion.Version {
		old := &v1alpha1.CloneSet{}
		if err := json.Unmarshal(raw, old); err != nil {
			return nil, err
		}
		if err := old.ConvertTo(set); err != nil {
			return nil, err
		}
	} else if err := json.Unmarshal(raw, set); err != nil {
		return nil, err
	}
	if set.Namespace == "" {
		set.Namespace = metav1.NamespaceDefault
	}
	return set, nil
}

// validate refuses what the webhook refuses.
func validate(set *kruise.CloneSet) error {
	raw, err := json.Marshal(set)
	if err != nil {
		return err
	}
	response := cloneset.New(cloneset.Options{}).Validator().Handle(context.Background(), request(kruise.GroupVersion.Version, set.Name, raw))
	if response.Allowed {
		return nil
	}
	return errors.New(response.Result.Message)
}

func request(version, name string, raw []byte) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Name: name, Kind: metav1.GroupVersionKind{Group: kruise.GroupName, Version: version, Kind: "CloneSet"},
		Object: runtime.RawExtension{Raw: raw},
	}}
}
