// SPDX-License-Identifier: Apache-2.0

// Package steps lists the steps of the webhooks of pods. A new step is added here and nowhere else.
package steps

import (
	"context"

	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/accounting"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/podunavailablebudget"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/barriers"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/budget"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/budgetannotation"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/liveness"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/persistence"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/readinessgate"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/serverlessprobe"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/sidecars"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/spreads"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
	"github.com/regatta-sh/regatta/engine"
)

// Needs are what steps need.
type Needs struct {
	Finder   *podunavailablebudget.Finder
	Ledger   *accounting.Accountant
	Recent   *protection.Recent
	Reporter *protection.Reporter
	// Cached and Live read the objects that steps use, and Engine decides.
	Cached, Live client.Reader
	Engine       *engine.Engine
	// Namespace is the namespace of the manager.
	Namespace string
	// Awaited returns the SidecarSets that caches may not have yet; nil if none are awaited.
	Awaited func(ctx context.Context, token string) ([]podscope.PendingSelector, error)
	// Targets and Book are those of WorkloadSpreads; nil if there are none, as in a simulation.
	Targets *spread.Targets
	Book    *spread.Recorder
}

// ListEnabled returns the steps that the feature gates enable, in order.
func ListEnabled(on func(featuregate.Feature) bool, needs Needs) (pod.Steps, error) {
	out := pod.Steps{
		Mutating: []pod.MutatingStep{
			readinessgate.New(on(features.KruisePodReadinessGate)),
			sidecars.New(sidecars.Options{
				Cached: needs.Cached, Live: needs.Live, Engine: needs.Engine, Namespace: needs.Namespace, Awaited: needs.Awaited,
				SortByName: on(features.EnableSortSidecarContainerByName),
			}),
			barriers.New(needs.Engine, on(features.LaunchPriorityNativeSidecars)),
			budgetannotation.New(needs.Finder),
			liveness.New(needs.Engine),
			persistence.New(persistence.Options{
				Cached: podscope.Reader{Reader: needs.Cached, Live: needs.Live, Claims: needs.Awaited}, Live: needs.Live, Engine: needs.Engine,
				Configuration: rules.Configuration{Reader: needs.Live, Namespace: needs.Namespace},
			}),
			serverlessprobe.New(needs.Cached),
		},
		Validating: []pod.ValidatingStep{
			budget.New(budget.Options{
				Ledger: needs.Ledger, Recent: needs.Recent, Reporter: needs.Reporter,
				Deletes: on(features.PodUnavailableBudgetDeleteGate), Updates: on(features.PodUnavailableBudgetUpdateGate),
			}),
		},
	}
	if needs.Targets != nil {
		out.Mutating = append(out.Mutating, spreads.New(needs.Targets, needs.Book))
		out.Validating = append(out.Validating, spreads.NewRecords(needs.Targets, needs.Book))
	}
	return out.Enabled(on)
}
