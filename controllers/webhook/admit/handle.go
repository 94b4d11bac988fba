// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/webhook/review"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// MutatingHandler is the mutating webhook of the kind; nil if the kind has no defaults.
func (k *Kind[H]) MutatingHandler() admission.Handler {
	if k.Default == nil && k.DefaultOlder == nil && k.Fill == nil {
		return nil
	}
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		if !isSpecWrite(&request) {
			return admission.Allowed("")
		}
		o, old, err := k.readObjects(&request)
		if err != nil {
			return admission.Allowed("") // the schema, or the validating webhook, says what is wrong
		}
		if k.DefaultOlder != nil && o.Older != nil {
			before := o.Older.DeepCopyObject()
			k.DefaultOlder(o.Older, hubOf(old))
			if equality.Semantic.DeepEqual(before, o.Older) {
				return admission.Allowed("")
			}
			return review.PatchResponse(o.Raw, before, o.Older)
		}
		before := o.Hub.DeepCopyObject().(H)
		if k.Default != nil {
			k.Default(o.Hub, hubOf(old))
		}
		if k.DefaultNewer != nil && o.Older == nil {
			k.DefaultNewer(o.Hub)
		}
		if k.Fill != nil && old == nil {
			k.Fill(ctx, o.Hub)
		}
		if equality.Semantic.DeepEqual(before, o.Hub) {
			return admission.Allowed("")
		}
		was, err := k.toRequestVersion(o, before)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		is, err := k.toRequestVersion(o, o.Hub)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return review.PatchResponse(o.Raw, was, is)
	})
}

// ValidatingHandler is the validating webhook of the kind.
func (k *Kind[H]) ValidatingHandler() admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		if !isSpecWrite(&request) {
			return admission.Allowed("")
		}
		o, old, err := k.readObjects(&request)
		if err != nil {
			return review.RefuseUnreadable(&request, err)
		}
		if old != nil && k.isUnchanged(o, *old) {
			return admission.Allowed("")
		}
		found := &rules.Findings{}
		if k.ValidateVersion != nil {
			k.ValidateVersion(ctx, o, old, found)
		} else {
			k.Validate(ctx, o.Hub, hubOf(old), found)
		}
		if o.Older != nil {
			for _, e := range found.Errs {
				e.Field = k.olderPath(e.Field)
			}
			for i, w := range found.Warnings {
				if path, rest, ok := strings.Cut(w, ": "); ok {
					found.Warnings[i] = k.olderPath(path) + ": " + rest
				}
			}
		}
		if len(k.Loose) > 0 {
			found.WarnUnknownFields(o.Raw, k.New(), k.Loose...)
		}
		if len(found.Errs) > 0 {
			return review.RefuseInvalid(&request, found.Errs).WithWarnings(found.Warnings...)
		}
		if k.Accepted != nil && (request.DryRun == nil || !*request.DryRun) {
			if err := k.Accepted(ctx, o.Hub, hubOf(old)); err != nil {
				return admission.Errored(http.StatusInternalServerError, err).WithWarnings(found.Warnings...)
			}
		}
		return admission.Allowed("").WithWarnings(found.Warnings...)
	})
}

// Webhooks are the two webhooks of a kind of any type.
type Webhooks interface {
	MutatingHandler() admission.Handler
	ValidatingHandler() admission.Handler
}

var _ Webhooks = &Kind[client.Object]{}
