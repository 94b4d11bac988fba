// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// RowsInput is the plan's question together with every candidate. Only bundles
// that define the point are asked, because it costs more.
type RowsInput struct {
	// Plan is the whole question of rollout/plan.
	Plan PlanInput `json:"plan"`
	// Rows are the candidates, in the order of rank and scatter.
	Rows []PodFacts `json:"rows"`
}

// RowsOutput names the pods to take, first to last; pods not named are held.
type RowsOutput struct {
	// Order has the names of pods. A name with a namespace, such as shop/web-0, is that of one pod;
	// one without is that of each pod of the name, in the order of the rows.
	Order []string `json:"order"`
}

// RowsPoint lets a policy order all candidates at once. There is no built-in
// one: controllers of workloads ask it after the plan and the ranks, where a
// bundle of the platform has it, and only there. Without an answer nothing new is started.
func RowsPoint() decision.Point[RowsInput, RowsOutput] {
	return decision.Point[RowsInput, RowsOutput]{
		Name: "rollout/rows", Budget: 2 * time.Second, MaxResult: 200000, MaxBytes: 16 << 20,
		Fallback: func(RowsInput) RowsOutput { return RowsOutput{} },
		// Pods that are not named are held, so fewer are stricter; another order is
		// neither.
		Lean: func(_ RowsInput, then, now RowsOutput) decision.Strictness {
			return decision.StrictnessOf(!containsAll(now.Order, then.Order), !containsAll(then.Order, now.Order))
		},
	}
}

// containsAll reports whether some names have all of others.
func containsAll(names, others []string) bool {
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	return !slices.ContainsFunc(others, func(o string) bool { return !known[o] })
}
