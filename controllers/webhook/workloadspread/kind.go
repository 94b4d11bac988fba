// SPDX-License-Identifier: Apache-2.0

// Package workloadspread has the admission of WorkloadSpreads (WS-11): their defaults and their rules, in both
// versions.
//
// The types have the rules that the schema can have, such as that the target does not change, and the limits of the
// Adaptive strategy.
package workloadspread

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// New returns the kind. The reader reads other WorkloadSpreads and workloads, the configuration has more kinds of workloads;
// templates are the settings that patched pods are checked with. off is true if the feature gate is off: no pod is put into
// subsets then, so no WorkloadSpread may be created or changed. await waits until the API server sends the pods of the namespace
// before a spread is created; nil if no pods are sent.
func New(reader client.Reader, configuration rules.Configuration, templates podtemplate.Settings, off bool, await rules.Await) *admit.Kind[*v1beta1.WorkloadSpread] {
	v := validator{reader, configuration, templates, off}
	return &admit.Kind[*v1beta1.WorkloadSpread]{
		New:   func() *v1beta1.WorkloadSpread { return &v1beta1.WorkloadSpread{} },
		Older: func() admit.Spoke { return &v1alpha1.WorkloadSpread{} }, OlderVersion: v1alpha1.GroupVersion.Version,
		Renamed: map[string]string{
			"spec.subsets[].requiredNodeSelector":  "spec.subsets[].requiredNodeSelectorTerm",
			"spec.subsets[].preferredNodeSelector": "spec.subsets[].preferredNodeSelectorTerms",
		},
		Same: func(a, b *v1beta1.WorkloadSpread) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Default: func(spread, _ *v1beta1.WorkloadSpread) {
			if spread.Spec.ScheduleStrategy.Type == "" {
				spread.Spec.ScheduleStrategy.Type = v1beta1.FixedWorkloadSpreadScheduleStrategyType
			}
		},
		Validate: v.validateSpec, Accepted: rules.AwaitNew[*v1beta1.WorkloadSpread](await),
	}
}
