// SPDX-License-Identifier: Apache-2.0

// Package resourcedistribution has the admission of ResourceDistributions (RD-04), in both versions. There are
// no defaults.
//
// The API server checks by a dry run whether the Secret or ConfigMap is valid.
package resourcedistribution

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
)

// New returns the kind. The writer makes only dry runs, in the namespace of the manager.
func New(writer client.Writer, namespace string) *admit.Kind[*v1beta1.ResourceDistribution] {
	v := validator{writer, namespace}
	return &admit.Kind[*v1beta1.ResourceDistribution]{
		New:   func() *v1beta1.ResourceDistribution { return &v1beta1.ResourceDistribution{} },
		Older: func() admit.Spoke { return &v1alpha1.ResourceDistribution{} }, OlderVersion: v1alpha1.GroupVersion.Version,
		Renamed:  map[string]string{"spec.targets.namespaceSelector": "spec.targets.namespaceLabelSelector"},
		Same:     func(a, b *v1beta1.ResourceDistribution) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Validate: v.validateSpec,
	}
}
