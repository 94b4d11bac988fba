// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func TestATagIsCreatedOnceAVersion(t *testing.T) {
	then := metav1.Date(2026, 7, 2, 8, 0, 0, 0, time.UTC)
	image := func(tag string, version int64, at *metav1.Time) *v1beta1.NodeImage {
		return &v1beta1.NodeImage{Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{
			"nginx": {Tags: []v1beta1.ImageTagSpec{{Tag: tag, Version: version, CreatedAt: at}}},
		}}}
	}
	for _, tc := range []struct {
		name     string
		now, old *v1beta1.NodeImage
		kept     bool
	}{
		{"a new object", image("1", 0, nil), nil, false},
		{"a time that is said", image("1", 0, &then), nil, true},
		{"the same version of the tag", image("1", 2, nil), image("1", 2, &then), true},
		{"a newer version of the tag", image("1", 3, nil), image("1", 2, &then), false},
		{"another tag", image("2", 2, nil), image("1", 2, &then), false},
		{"a tag that had no time", image("1", 2, nil), image("1", 2, nil), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			New().Default(tc.now, tc.old)
			got := tc.now.Spec.Images["nginx"].Tags[0].CreatedAt
			if got == nil || got.Equal(&then) != tc.kept || !tc.kept && time.Since(got.Time) > time.Minute {
				t.Errorf("got %v", got)
			}
		})
	}
}
