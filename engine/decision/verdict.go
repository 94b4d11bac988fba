// SPDX-License-Identifier: Apache-2.0

package decision

// Verdict is an answer in a word, and why.
type Verdict struct {
	Word    string `json:"word"`
	Reasons []Hold `json:"reasons,omitempty"`
}

// Words of verdicts; rollout/change has its actions besides.
const (
	Go     = "Go"
	Held   = "Hold"
	Partly = "Partly" // some of the pods are held
	Order  = "Order"
	Scale  = "Scale"
	Stay   = "Stay"
)

// Judged is an answer that can be put in a word.
type Judged interface{ Verdict() Verdict }

// Verdict implements Judged.
func (o ChangeOutput) Verdict() Verdict {
	return Verdict{Word: o.Action, Reasons: []Hold{{Reason: o.Reason, Message: o.Message}}}
}

// Verdict implements Judged.
func (o PlanOutput) Verdict() Verdict { return Verdict{Word: heldOr(Go, o.Holds), Reasons: o.Holds} }

// Verdict implements Judged.
func (o RankOutput) Verdict() Verdict { return Verdict{Word: heldOr(Order, o.Holds), Reasons: o.Holds} }

// Verdict implements Judged.
func (o RowsOutput) Verdict() Verdict { return Verdict{Word: Order} }

// Verdict implements Judged.
func (o ScaleOutput) Verdict() Verdict {
	word := Stay
	if o.Create > 0 || o.Delete > 0 {
		word = Scale
	}
	return Verdict{Word: heldOr(word, o.Holds), Reasons: o.Holds}
}

func heldOr(word string, holds []Hold) string {
	for _, h := range holds {
		if h.Pod == "" && len(h.Where) == 0 {
			return Held
		}
	}
	if len(holds) > 0 {
		return Partly
	}
	return word
}

// VerdictOf puts the answer of a record in a word; of an answer that cannot be,
// it is the outcome.
func VerdictOf(r Record) Verdict {
	if j, ok := r.Output.(Judged); ok {
		return j.Verdict()
	}
	return Verdict{Word: string(r.Outcome)}
}
