// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	"github.com/regatta-sh/regatta/engine/decision"
)

// ListMissingFacts implements decision.InputWithMissingFacts.
func (in PlanInput) ListMissingFacts() []decision.MissingFact { return in.Workload.MissingFacts }

// ListMissingFacts implements decision.InputWithMissingFacts. They include those of the pods. A caller that asks about many
// pods holds each one that has missing facts itself, and asks with HidePodMissingFacts, so that the other pods are decided.
func (in RankInput) ListMissingFacts() []decision.MissingFact {
	missing := slices.Clip(in.Workload.MissingFacts)
	for i := range in.Pods {
		missing = append(missing, in.Pods[i].MissingFacts...)
	}
	return missing
}

// HidePodMissingFacts returns the facts of a pod as if none were missing. The caller must hold the pod if one is.
func HidePodMissingFacts(p PodFacts) PodFacts {
	p.MissingFacts = nil
	return p
}

// ListMissingFacts implements decision.InputWithMissingFacts. They include those of the pods, which are ordered together.
func (in RowsInput) ListMissingFacts() []decision.MissingFact {
	missing := slices.Clip(in.Plan.Workload.MissingFacts)
	for i := range in.Rows {
		missing = append(missing, in.Rows[i].MissingFacts...)
	}
	return missing
}

// ListMissingFacts implements decision.InputWithMissingFacts. They include those of the pods, which are chosen from together.
func (in ScaleInput) ListMissingFacts() []decision.MissingFact {
	missing := slices.Clip(in.Workload.MissingFacts)
	for i := range in.Preparing {
		missing = append(missing, in.Preparing[i].MissingFacts...)
	}
	for i := range in.Pods {
		missing = append(missing, in.Pods[i].MissingFacts...)
	}
	return missing
}

// ListMissingFacts implements decision.InputWithMissingFacts.
func (in ChangeInput) ListMissingFacts() []decision.MissingFact { return in.Workload.MissingFacts }

// ListMissingFacts implements decision.InputWithMissingFacts.
func (in PredownloadInput) ListMissingFacts() []decision.MissingFact { return in.Workload.MissingFacts }

// ListMissingFacts implements decision.InputWithMissingFacts.
func (in RunInput) ListMissingFacts() []decision.MissingFact { return in.Workload.MissingFacts }
