// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestRequestsWithoutASpecPass(t *testing.T) {
	for _, handler := range []admission.Handler{&Defaulter{}, &Validator{}} {
		for _, r := range []admission.Request{
			request(beta, admissionv1.Delete, nil, typed(t, beta)),
			request(beta, admissionv1.Delete, nil, nil),
			request(beta, admissionv1.Connect, nil, nil),
		} {
			if got := handler.Handle(t.Context(), r); !got.Allowed || len(got.Patches) > 0 {
				t.Errorf("%T refused %s: %v", handler, r.Operation, got.Result)
			}
		}
		status := request(beta, admissionv1.Update, []byte(`{"spec":{"replicas":-1}}`), []byte(`{}`))
		status.SubResource = "status"
		if got := handler.Handle(t.Context(), status); !got.Allowed || len(got.Patches) > 0 {
			t.Errorf("%T refused a status: %v", handler, got.Result)
		}
	}
}

func TestRequestsThatCannotBeReadAreBad(t *testing.T) {
	for _, tc := range []struct {
		request admission.Request
		code    int32
		want    string
	}{
		{request("v1", admissionv1.Create, typed(t, beta), nil), 400, `version "v1"`},
		{request(beta, admissionv1.Create, []byte(`{"spec":{"replicas":"x"}}`), nil), 422, "spec.replicas: Invalid value: must be a number, not a string"},
		{request(alpha, admissionv1.Create, []byte(`{"spec":{"template":{"spec":{"containers":"x"}}}}`), nil), 422, "spec.template.spec.containers: Invalid value: must be a list, not a string"},
		{request(beta, admissionv1.Update, typed(t, beta), []byte(`x`)), 400, "invalid character"},
	} {
		got := (&Validator{}).Handle(t.Context(), tc.request)
		if got.Allowed || got.Result.Code != tc.code || !strings.Contains(got.Result.Message, tc.want) {
			t.Errorf("got %v, want %d %s", got.Result, tc.code, tc.want)
		}
		// The schema is asked after the defaults, and says it better.
		if got := (&Defaulter{}).Handle(t.Context(), tc.request); !got.Allowed || len(got.Patches) > 0 {
			t.Errorf("got %v", got.Result)
		}
	}
}

func FuzzHandlers(f *testing.F) {
	for _, version := range versions() {
		f.Add(version == alpha, typed(f, version), []byte(`{}`))
		f.Add(version == alpha, typed(f, version, `{ROLLING: {POLICY: InPlaceOnly, partition: 10%, maxSurge: 1, priorityStrategy: {weightPriority: [{weight: 1, matchSelector: {matchLabels: {a: b}}}]}, scatterStrategy: [{key: a, value: b}], inPlaceUpdateStrategy: {imagePreDownloadParallelism: 5%}}}`),
			typed(f, version, `{spec: {template: {spec: {containers: [{name: main, image: x, livenessProbe: {}}]}}}}`))
	}
	f.Fuzz(func(t *testing.T, isAlpha bool, object, old []byte) {
		version := beta
		if isAlpha {
			version = alpha
		}
		validator := &Validator{Pods: pods{}}
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete} {
			r := request(version, operation, object, old)
			validator.Handle(t.Context(), r)
			response := (&Defaulter{}).Handle(t.Context(), r)
			if operation == admissionv1.Create && response.Allowed && json.Valid(object) {
				after := defaulted(t, &Defaulter{}, version, object, nil)
				if again := (&Defaulter{}).Handle(t.Context(), request(version, operation, after, nil)); len(again.Patches) > 0 {
					t.Errorf("defaults of defaults change the object: %v", again.Patches)
				}
			}
		}
	})
}
