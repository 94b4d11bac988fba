// SPDX-License-Identifier: Apache-2.0

package rollout

import "github.com/regatta-sh/regatta/engine/decision"

// Words of verdicts; rollout/change has its actions besides.
const (
	Go     = "Go"
	Held   = "Hold"
	Partly = "Partly" // some of the pods are held
	Order  = "Order"
	Scale  = "Scale"
	Stay   = "Stay"
)

// Verdict implements Judged.
func (o ChangeOutput) Verdict() decision.Verdict {
	return decision.Verdict{Word: o.Action, Reasons: []decision.Hold{{Reason: o.Reason, Message: o.Message}}}
}

// Verdict implements Judged.
func (o PlanOutput) Verdict() decision.Verdict {
	return decision.Verdict{Word: heldOr(Go, o.Holds), Reasons: o.Holds}
}

// Verdict implements Judged.
func (o RankOutput) Verdict() decision.Verdict {
	return decision.Verdict{Word: heldOr(Order, o.Holds), Reasons: o.Holds}
}

// Verdict implements Judged.
func (o RowsOutput) Verdict() decision.Verdict { return decision.Verdict{Word: Order} }

// Verdict implements Judged.
func (o ScaleOutput) Verdict() decision.Verdict {
	word := Stay
	if o.Create > 0 || o.Delete > 0 {
		word = Scale
	}
	return decision.Verdict{Word: heldOr(word, o.Holds), Reasons: o.Holds}
}

func heldOr(word string, holds []decision.Hold) string {
	for _, h := range holds {
		if h.Whole() {
			return Held
		}
	}
	if len(holds) > 0 {
		return Partly
	}
	return word
}

// From implements decision.Originated.
func (o *PlanOutput) From(pkg string) { decision.Attribute(o.Holds, pkg) }

// From implements decision.Originated.
func (o *RankOutput) From(pkg string) { decision.Attribute(o.Holds, pkg) }

// From implements decision.Originated.
func (o *ScaleOutput) From(pkg string) { decision.Attribute(o.Holds, pkg) }
