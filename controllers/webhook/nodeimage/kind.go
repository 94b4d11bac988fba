// SPDX-License-Identifier: Apache-2.0

// Package nodeimage has the admission of NodeImages, and the defaults of their tags. The controller of
// ImagePullJobs writes most of them, but users may ask a node for an image too.
package nodeimage

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// New makes the webhooks of NodeImages.
func New() *admit.Kind[*v1beta1.NodeImage] {
	return &admit.Kind[*v1beta1.NodeImage]{
		New:          func() *v1beta1.NodeImage { return &v1beta1.NodeImage{} },
		Older:        func() admit.Spoke { return &v1alpha1.NodeImage{} },
		OlderVersion: v1alpha1.GroupVersion.Version,
		Same:         func(a, b *v1beta1.NodeImage) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Default:      setDefaults,
		Validate:     validateSpec,
	}
}

// validateSpec has the rules that the schema cannot have for a list without a maximum length.
func validateSpec(_ context.Context, object, _ *v1beta1.NodeImage, found *rules.Findings) {
	path := field.NewPath("spec", "images")
	for _, name := range slices.Sorted(maps.Keys(object.Spec.Images)) {
		tags := object.Spec.Images[name].Tags
		texts := make([]string, len(tags))
		for i := range tags {
			texts[i] = tags[i].Tag
		}
		for i, again := range rules.FindDuplicates(texts) {
			if again {
				found.AddErrors(field.Duplicate(path.Key(name).Child("tags").Index(i).Child("tag"), texts[i]))
			}
		}
	}
}
