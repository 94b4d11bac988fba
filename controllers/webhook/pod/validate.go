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

// Patience is how long an answer may take where nobody says otherwise. It must come before the API server's
// own time is over, after which the failure policy decides: a budget that is late
// must refuse.
const Patience = 2500 * time.Millisecond

// Guard is a step of Validator: something that a pod may have to stay for.
type Guard interface {
	// Ask answers. The steps that follow are asked if it is allowed.
	Ask(ctx context.Context, r *Request) admission.Response
}

// Validator is the validating webhook of pods: the first guard that refuses decides.
type Validator struct {
	// Pods are read past the cache.
	Pods   client.Reader
	Guards []Guard
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
	for _, guard := range v.Guards {
		if answer = guard.Ask(ctx, r); !answer.Allowed {
			return answer
		}
	}
	return answer
}
