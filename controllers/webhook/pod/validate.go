// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Validator is the validating webhook of pods. The first step that refuses decides.
type Validator struct {
	// Pods reads pods from the API server.
	Pods client.Reader
	// Steps are the enabled steps, in order.
	Steps []ValidatingStep
	// Patience is how long all steps may take; the constant if it is 0.
	Patience time.Duration
}

// Handle implements admission.Handler.
func (v *Validator) Handle(ctx context.Context, req admission.Request) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(v.Patience, Patience))
	defer cancel()
	r, err := readRequest(ctx, v.Pods, &req)
	if errors.Is(err, errNotPods) {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("asking whether the pod may go: %w", err))
	}
	answer := admission.Allowed("")
	if r == nil {
		return answer
	}
	var warnings []string
	notes := map[string]string{}
	for _, step := range v.Steps { // each may warn, or note something for the audit log
		answer = step.Validate(ctx, r)
		warnings = append(warnings, answer.Warnings...)
		maps.Copy(notes, answer.AuditAnnotations)
		if !answer.Allowed {
			break
		}
	}
	answer.Warnings = warnings
	if len(notes) > 0 {
		answer.AuditAnnotations = notes
	}
	return answer
}
