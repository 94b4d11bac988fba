// SPDX-License-Identifier: Apache-2.0

// Package podprobemarker says which PodProbeMarkers are admitted. They have no
// defaults: what is 0 in a probe counts as 1 when it runs.
//
// The schema has most of what is wrong with one probe, as far as the API server
// lets a rule cost in a list without a limit. Here are the rest, and what several
// probes have to do with each other.
package podprobemarker

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
)

// New makes the webhooks of PodProbeMarkers.
func New() *admit.Kind[*v1alpha1.PodProbeMarker] {
	return &admit.Kind[*v1alpha1.PodProbeMarker]{
		New:      func() *v1alpha1.PodProbeMarker { return &v1alpha1.PodProbeMarker{} },
		Same:     func(a, b *v1alpha1.PodProbeMarker) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Validate: validateSpec,
	}
}
