// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Validator is the validating webhook of pods. The first step that refuses decides.
type Validator struct {
	// Pods are read past the cache.
	Pods client.Reader
	// Steps are enabled ones, in order.
	Steps []ValidatingStep
	// Patience is how long all of them may take; the constant if it is 0.
	Patience time.Duration
}

// Handle implements admission.Handler.
func (v *Validator) Handle(ctx context.Context, req admission.Request) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(v.Patience, Patience))
	defer cancel()
	r, err := read(ctx, v.Pods, &req)
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
	for _, step := range v.Steps {
		if answer = step.Validate(ctx, r); !answer.Allowed {
			return answer
		}
	}
	return answer
}
