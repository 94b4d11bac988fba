// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// GatesOf returns the gates of protection, from a function that reports whether a feature gate is on.
func GatesOf(on func(featuregate.Feature) bool) protection.Gates {
	return protection.Gates{
		Deletion:     on(features.ResourcesDeletionProtection),
		CRDCascading: on(features.DeletionProtectionForCRDCascadingGate),
		BudgetDelete: on(features.PodUnavailableBudgetDeleteGate),
		BudgetUpdate: on(features.PodUnavailableBudgetUpdateGate),
	}
}
