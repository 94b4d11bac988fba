// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/features"
)

// Gates are the feature gates that every kind of workload depends on.
type Gates struct {
	VerticalScaling      bool // InPlaceWorkloadVerticalScaling
	EnvFromMetadata      bool // InPlaceUpdateEnvFromMetadata
	RecreateOnNewClaims  bool // RecreatePodWhenChangeVCTInCloneSetGate
	EventOptimization    bool // CloneSetEventHandlerOptimization
	DropLateExpectations bool // ForceDeleteTimeoutExpectationGate
	NodeAgent            bool // KruiseDaemon, with which the chart deploys node agents, and DaemonWatchingPod
}

// GatesOf reads the gates from a function that reports which ones are enabled.
func GatesOf(on func(featuregate.Feature) bool) Gates {
	return Gates{
		VerticalScaling:      on(features.InPlaceWorkloadVerticalScaling),
		EnvFromMetadata:      on(features.InPlaceUpdateEnvFromMetadata),
		RecreateOnNewClaims:  on(features.RecreatePodWhenChangeVCTInCloneSetGate),
		EventOptimization:    on(features.CloneSetEventHandlerOptimization),
		DropLateExpectations: on(features.ForceDeleteTimeoutExpectationGate),
		NodeAgent:            on(features.KruiseDaemon) && on(features.DaemonWatchingPod),
	}
}
