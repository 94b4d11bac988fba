// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// GatesOf reads those of protection from what says of a feature gate whether it is on.
func GatesOf(on func(featuregate.Feature) bool) protection.Gates {
	return protection.Gates{
		Deletion:     on(features.ResourcesDeletionProtection),
		CRDCascading: on(features.DeletionProtectionForCRDCascadingGate),
		BudgetDelete: on(features.PodUnavailableBudgetDeleteGate),
		BudgetUpdate: on(features.PodUnavailableBudgetUpdateGate),
	}
}
