// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/features"
)

// Gates are the feature gates that only CloneSets depend on.
type Gates struct {
	ShortHash               bool // CloneSetShortHash
	PartitionRollback       bool // CloneSetPartitionRollback
	PreparingUpdateAsUpdate bool
}

// GatesOf reads the gates from a function that reports which ones are enabled.
func GatesOf(on func(featuregate.Feature) bool) Gates {
	return Gates{
		ShortHash:               on(features.CloneSetShortHash),
		PartitionRollback:       on(features.CloneSetPartitionRollback),
		PreparingUpdateAsUpdate: on(features.PreparingUpdateAsUpdate),
	}
}
