// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// validator finds errors in CloneSets.
type validator struct {
	pods      client.Reader
	templates podtemplate.Settings
}

// validateSpec applies the rules to a CloneSet that is new or changed.
func (v validator) validateSpec(ctx context.Context, set object, old *object, found *rules.Findings) {
	if old == nil {
		found.SubdomainName(set.Hub)
	} else {
		validateUnchanged(set.Hub, old.Hub, found)
	}
	validateSelector(set.Hub, found)
	v.validateTemplate(set, old, found)
	validateScale(set.Hub, found)
	validateStrategy(set, old, found)
	if is := asAlpha(&set); is != nil {
		var was *v1alpha1.CloneSet
		if old != nil {
			was = asAlpha(old)
		}
		v.validateAlpha(ctx, is, was, found)
	} else {
		validatePreDownload(set.Hub, old, found)
	}
}

// validateTemplate checks templates only if they, or the claims that they mount, have changed.
func (v validator) validateTemplate(set object, old *object, found *rules.Findings) {
	spec := &set.Hub.Spec
	if old != nil && equality.Semantic.DeepEqual(spec.Template, old.Hub.Spec.Template) &&
		equality.Semantic.DeepEqual(spec.VolumeClaimTemplates, old.Hub.Spec.VolumeClaimTemplates) {
		return
	}
	path := field.NewPath("spec", "template")
	template, claims := spec.Template.DeepCopy(), podtemplate.ClaimNames(spec.VolumeClaimTemplates)
	v.templates.ApplyDefaults(template)
	found.AddErrors(v.templates.ValidateTemplate(template, claims, path)...)
	found.RunsForever(&template.Spec, path.Child("spec"), "cloneset")
	found.WarnUnknownFields(set.Raw, &v1beta1.CloneSet{}, "spec.template", "spec.volumeClaimTemplates")
}
