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

// ToVerdict implements Judged.
func (o ChangeOutput) ToVerdict() decision.Verdict {
	return decision.Verdict{Word: o.Action, Reasons: []decision.Hold{{Reason: o.Reason, Message: o.Message}}}
}

// ToVerdict implements Judged.
func (o PlanOutput) ToVerdict() decision.Verdict {
	return decision.Verdict{Word: heldOr(Go, o.Holds), Reasons: o.Holds}
}

// ToVerdict implements Judged.
func (o RankOutput) ToVerdict() decision.Verdict {
	return decision.Verdict{Word: heldOr(Order, o.Holds), Reasons: o.Holds}
}

// ToVerdict implements Judged.
func (o RowsOutput) ToVerdict() decision.Verdict { return decision.Verdict{Word: Order} }

// ToVerdict implements Judged.
func (o ScaleOutput) ToVerdict() decision.Verdict {
	word := Stay
	if o.Create > 0 || o.Delete > 0 {
		word = Scale
	}
	return decision.Verdict{Word: heldOr(word, o.Holds), Reasons: o.Holds}
}

func heldOr(word string, holds []decision.Hold) string {
	for _, h := range holds {
		if h.IsWholeWorkload() {
			return Held
		}
	}
	if len(holds) > 0 {
		return Partly
	}
	return word
}

// SetDefaultRules implements decision.Originated.
func (o *PlanOutput) SetDefaultRules(pkg string) { decision.SetDefaultRules(o.Holds, pkg) }

// SetDefaultRules implements decision.Originated.
func (o *RankOutput) SetDefaultRules(pkg string) { decision.SetDefaultRules(o.Holds, pkg) }

// SetDefaultRules implements decision.Originated.
func (o *ScaleOutput) SetDefaultRules(pkg string) { decision.SetDefaultRules(o.Holds, pkg) }
