// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/features"
)

// Gates are the feature gates that only DaemonSets depend on.
type Gates struct {
	PruneIneligibleNodes bool // DaemonSetPruneIneligibleNodes
}

// GatesOf reads the gates from a function that reports which ones are enabled.
func GatesOf(on func(featuregate.Feature) bool) Gates {
	return Gates{PruneIneligibleNodes: on(features.DaemonSetPruneIneligibleNodes)}
}
