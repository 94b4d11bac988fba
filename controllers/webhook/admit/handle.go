package admit

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/webhook/review"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// Defaulter is the mutating webhook of the kind; nil if it fills in nothing.
func (k *Kind[H]) Defaulter() admission.Handler {
	if k.Default == nil && k.Fill == nil {
		return nil
	}
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		if !writes(&request) {
			return admission.Allowed("")
		}
		o, old, updated, err := k.read(&request)
		if err != nil {
			return admission.Allowed("") // the schema, or the validating webhook, says what is wrong
		}
		before := o.hub.DeepCopyObject().(H)
		if k.Default != nil {
			k.Default(o.hub, old)
		}
		if k.DefaultNewer != nil && !o.older {
			k.DefaultNewer(o.hub)
		}
		if k.Fill != nil && !updated {
			k.Fill(ctx, o.hub)
		}
		if equality.Semantic.DeepEqual(before, o.hub) {
			return admission.Allowed("")
		}
		was, err := k.typed(o, before)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		is, err := k.typed(o, o.hub)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return review.Patched(o.raw, was, is)
	})
}

// Validator is the validating webhook of the kind.
func (k *Kind[H]) Validator() admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		if !writes(&request) {
			return admission.Allowed("")
		}
		o, old, updated, err := k.read(&request)
		if err != nil {
			return review.Unreadable(&request, err)
		}
		if updated && k.Same(o.hub, old) {
			return admission.Allowed("")
		}
		found := &rules.Findings{}
		k.Validate(ctx, o.hub, old, found)
		if o.older {
			for _, e := range found.Errs {
				e.Field = k.place(e.Field)
			}
		}
		if len(k.Loose) > 0 {
			found.Unknown(o.raw, k.New(), k.Loose...)
		}
		if len(found.Errs) > 0 {
			return review.Invalid(&request, found.Errs).WithWarnings(found.Warnings...)
		}
		return admission.Allowed("").WithWarnings(found.Warnings...)
	})
}

// Webhooks are the two of a kind, whatever its type.
type Webhooks interface {
	Defaulter() admission.Handler
	Validator() admission.Handler
}

var _ Webhooks = &Kind[client.Object]{}
