package cloneset

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/review"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// Validator finds mistakes.
type Validator struct {
	// Pods is asked about the pods that a v1alpha1 user wants deleted.
	Pods client.Reader
	// Templates are the defaults that the Defaulter fills in. They are filled in here as well, into a copy, for templates
	// that it was told to keep.
	Templates podtemplate.Defaults
	// Checker is asked about templates that are created or changed, if there is one.
	Checker podtemplate.Checker
}

var _ admission.Handler = &Validator{}

// Handle implements admission.Handler.
func (v *Validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	if !writes(&request) {
		return admission.Allowed("")
	}
	set, old, err := decodeBoth(&request)
	if err != nil {
		return review.Unreadable(&request, err)
	}
	found := v.validate(ctx, set, old)
	if len(found.Errs) > 0 {
		return review.Invalid(&request, found.Errs).WithWarnings(found.Warnings...)
	}
	return admission.Allowed("").WithWarnings(found.Warnings...)
}

// validate applies the rules of CS-20 to what the user changed.
func (v *Validator) validate(ctx context.Context, set, old *object) *rules.Findings {
	found := &rules.Findings{}
	if old != nil && set.sameSpec(old) {
		return found
	}
	if old == nil {
		found.SubdomainName(set.hub)
	} else {
		validateUnchanged(set, old, found)
	}
	validateSelector(set, found)
	v.validateTemplate(ctx, set, old, found)
	validateScale(set, found)
	validateStrategy(set, old, found)
	if set.alpha != nil {
		v.validateAlpha(ctx, set, old, found)
	} else {
		validatePreDownload(set, old, found)
	}
	return found
}

// validateTemplate looks at templates only if they, or the claims they mount, are new.
func (v *Validator) validateTemplate(ctx context.Context, set, old *object, found *rules.Findings) {
	spec := &set.hub.Spec
	if old != nil && equality.Semantic.DeepEqual(spec.Template, old.hub.Spec.Template) &&
		equality.Semantic.DeepEqual(spec.VolumeClaimTemplates, old.hub.Spec.VolumeClaimTemplates) {
		return
	}
	path := field.NewPath("spec", "template")
	template, claims := spec.Template.DeepCopy(), podtemplate.ClaimNames(spec.VolumeClaimTemplates)
	v.Templates.Apply(template)
	before := len(found.Errs)
	found.Add(podtemplate.Validate(template, claims, path)...)
	found.RunsForever(&template.Spec, path.Child("spec"), "cloneset")
	found.Unknown(set.raw, &v1beta1.CloneSet{}, "spec.template", "spec.volumeClaimTemplates")
	if v.Checker != nil && len(found.Errs) == before {
		errs, warnings := v.Checker.Check(ctx, set.hub.Namespace, template, claims, path)
		found.Add(errs...)
		found.Warnings = append(found.Warnings, warnings...)
	}
}
