// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/features"
)

// Gates are the feature gates that only StatefulSets depend on.
type Gates struct {
	StartOrdinal  bool // StatefulSetStartOrdinal
	PodIndexLabel bool
	AutoDeletePVC bool // StatefulSetAutoDeletePVC
	AutoResizePVC bool // StatefulSetAutoResizePVCGate
}

// GatesOf reads the gates from a function that reports which ones are enabled.
func GatesOf(on func(featuregate.Feature) bool) Gates {
	return Gates{
		StartOrdinal:  on(features.StatefulSetStartOrdinal),
		PodIndexLabel: on(features.PodIndexLabel),
		AutoDeletePVC: on(features.StatefulSetAutoDeletePVC),
		AutoResizePVC: on(features.StatefulSetAutoResizePVCGate),
	}
}
