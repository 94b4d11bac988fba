// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// setDefaults sets the defaults of tags, and sorts them, since tags are searched in a sorted list. A missing policy is
// not created: it is refused, since it has a field that only a user can set.
func setDefaults(object, old *v1beta1.NodeImage) {
	now := metav1.Now().Rfc3339Copy() // at the precision that is stored
	for name, image := range object.Spec.Images {
		for i := range image.Tags {
			tag := &image.Tags[i]
			if tag.CreatedAt == nil {
				tag.CreatedAt = ptr.To(createdAt(old, name, tag, now))
			}
			if policy := tag.PullPolicy; policy != nil {
				if policy.TimeoutSeconds == nil {
					policy.TimeoutSeconds = ptr.To[int32](v1beta1.DefaultPullTimeoutSeconds)
				}
				if policy.BackoffLimit == nil {
					policy.BackoffLimit = ptr.To[int32](v1beta1.DefaultPullBackoffLimit)
				}
			}
		}
		slices.SortStableFunc(image.Tags, func(a, b v1beta1.ImageTagSpec) int { return strings.Compare(a.Tag, b.Tag) })
	}
}

// createdAt is now, unless this version of the tag was asked for before: applying a manifest again does not restart the
// deadlines of a pull.
func createdAt(old *v1beta1.NodeImage, name string, tag *v1beta1.ImageTagSpec, now metav1.Time) metav1.Time {
	if old == nil {
		return now
	}
	for _, before := range old.Spec.Images[name].Tags {
		if before.Tag == tag.Tag && before.Version == tag.Version && before.CreatedAt != nil {
			return *before.CreatedAt
		}
	}
	return now
}
