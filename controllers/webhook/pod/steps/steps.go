// SPDX-License-Identifier: Apache-2.0

// Package steps lists the steps of the webhooks of pods. A new step is added here and nowhere else.
package steps

import (
	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/ledger"
	"github.com/regatta-sh/regatta/controllers/podunavailablebudget"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/budget"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/budgetannotation"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/readinessgate"
)

// Needs are what steps need.
type Needs struct {
	Finder   *podunavailablebudget.Finder
	Ledger   *ledger.Ledger
	Recent   *protection.Recent
	Reporter *protection.Reporter
}

// Of are the steps that the feature gates enable, in order.
func Of(on func(featuregate.Feature) bool, needs Needs) (pod.Steps, error) {
	return pod.Steps{
		Mutating: []pod.MutatingStep{
			readinessgate.New(on(features.KruisePodReadinessGate)),
			budgetannotation.New(needs.Finder),
		},
		Validating: []pod.ValidatingStep{
			budget.New(budget.Options{
				Ledger: needs.Ledger, Recent: needs.Recent, Reporter: needs.Reporter,
				Deletes: on(features.PodUnavailableBudgetDeleteGate), Updates: on(features.PodUnavailableBudgetUpdateGate),
			}),
		},
	}.Enabled(on)
}
