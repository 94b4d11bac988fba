// SPDX-License-Identifier: Apache-2.0

package rollout

import "github.com/regatta-sh/regatta/engine/decision"

// ListMissingFacts implements decision.InputWithMissingFacts.
func (in PlanInput) ListMissingFacts() []decision.MissingFact { return in.Workload.MissingFacts }

// ListMissingFacts implements decision.InputWithMissingFacts.
func (in RankInput) ListMissingFacts() []decision.MissingFact { return in.Workload.MissingFacts }

// ListMissingFacts implements decision.InputWithMissingFacts.
func (in RowsInput) ListMissingFacts() []decision.MissingFact { return in.Plan.Workload.MissingFacts }

// ListMissingFacts implements decision.InputWithMissingFacts.
func (in ScaleInput) ListMissingFacts() []decision.MissingFact { return in.Workload.MissingFacts }

// ListMissingFacts implements decision.InputWithMissingFacts.
func (in ChangeInput) ListMissingFacts() []decision.MissingFact { return in.Workload.MissingFacts }

// ListMissingFacts implements decision.InputWithMissingFacts.
func (in PredownloadInput) ListMissingFacts() []decision.MissingFact { return in.Workload.MissingFacts }

// ListMissingFacts implements decision.InputWithMissingFacts.
func (in RunInput) ListMissingFacts() []decision.MissingFact { return in.Workload.MissingFacts }
