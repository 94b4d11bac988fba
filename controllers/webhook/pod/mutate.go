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

// Step is a step of Mutator: something that is added to pods.
type Step struct {
	Name string
	// Change changes the pod, and says whether it did. The namespace is that of the
	// request; a pod that is to be made may not have its own yet.
	Change func(ctx context.Context, namespace string, pod *corev1.Pod) (bool, error)
}

// Mutator is the mutating webhook of pods. Its steps are those of PA-04, in
// that order; the first that fails refuses the pod.
type Mutator struct {
	Steps []Step
	// Patience is how long all of them may take; the constant if it is 0.
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
	for _, step := range m.Steps {
		did, err := step.Change(ctx, req.Namespace, pod)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("%s: %w", step.Name, err))
		}
		changed = changed || did
	}
	if !changed {
		return admission.Allowed("")
	}
	return review.Patched(req.Object.Raw, before, pod)
}
