// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/webhook/review"
)

// Mutator is the mutating webhook of pods. The first step that fails refuses the pod.
type Mutator struct {
	// Steps are the enabled steps, in order.
	Steps []MutatingStep
	// Patience is how long all steps may take; the constant if it is 0.
	Patience time.Duration
}

// Handle implements admission.Handler.
func (m *Mutator) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create || req.SubResource != "" {
		return admission.Allowed("")
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(m.Patience, Patience))
	defer cancel()
	pod := &corev1.Pod{}
	if err := json.Unmarshal(req.Object.Raw, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the pod: %w", err))
	}
	before, changed := pod.DeepCopy(), false
	creation := &Creation{Pod: pod, Namespace: req.Namespace, DryRun: req.DryRun != nil && *req.DryRun}
	for _, step := range m.Steps {
		did, err := step.Mutate(ctx, creation)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("%s: %w", step.Name, err))
		}
		changed = changed || did
	}
	if !changed {
		return admission.Allowed("")
	}
	return review.PatchResponse(req.Object.Raw, before, pod)
}
