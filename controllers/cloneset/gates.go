package cloneset

import (
	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/features"
)

// Gates are the feature gates a CloneSet depends on (PL-09).
type Gates struct {
	ShortHash               bool // CloneSetShortHash
	PartitionRollback       bool // CloneSetPartitionRollback
	PreparingUpdateAsUpdate bool
	VerticalScaling         bool // InPlaceWorkloadVerticalScaling
	EnvFromMetadata         bool // InPlaceUpdateEnvFromMetadata
	RecreateOnNewClaims     bool // RecreatePodWhenChangeVCTInCloneSetGate
	EventOptimization       bool // CloneSetEventHandlerOptimization
	DropLateExpectations    bool // ForceDeleteTimeoutExpectationGate
	NodeAgent               bool // KruiseDaemon, and the agent is deployed
}

// GatesOf reads them from what says of a feature gate whether it is on.
func GatesOf(on func(featuregate.Feature) bool) Gates {
	return Gates{
		ShortHash:               on(features.CloneSetShortHash),
		PartitionRollback:       on(features.CloneSetPartitionRollback),
		PreparingUpdateAsUpdate: on(features.PreparingUpdateAsUpdate),
		VerticalScaling:         on(features.InPlaceWorkloadVerticalScaling),
		EnvFromMetadata:         on(features.InPlaceUpdateEnvFromMetadata),
		RecreateOnNewClaims:     on(features.RecreatePodWhenChangeVCTInCloneSetGate),
		EventOptimization:       on(features.CloneSetEventHandlerOptimization),
		DropLateExpectations:    on(features.ForceDeleteTimeoutExpectationGate),
	}
}
