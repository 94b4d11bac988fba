// SPDX-License-Identifier: Apache-2.0

// Package podprobemarker has the admission of PodProbeMarkers. They have no defaults: a 0 in a probe
// counts as 1 when the probe runs.
//
// The schema has most rules about a single probe, within the cost that the API server allows for rules
// in a list without a limit. This package has the other rules, and those about several probes.
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
