// SPDX-License-Identifier: Apache-2.0

package placement

import "github.com/regatta-sh/regatta/engine/decision"

// Words of verdicts.
const (
	Go   = "Go"
	Held = "Hold"
	Wait = "Wait"
)

// Verdict implements decision.Judged.
func (o BroadcastOutput) Verdict() decision.Verdict { return onward(o.Nodes, o.Holds, o.Denials) }

// From implements decision.Originated.
func (o *BroadcastOutput) From(pkg string) { attribute(pkg, o.Holds, o.Denials) }

// Verdict implements decision.Judged.
func (o AllocationOutput) Verdict() decision.Verdict {
	return told(decision.Verdict{Word: Go}, o.Holds, o.Denials)
}

// From implements decision.Originated.
func (o *AllocationOutput) From(pkg string) { attribute(pkg, o.Holds, o.Denials) }

// Verdict implements decision.Judged.
func (o EphemeralOutput) Verdict() decision.Verdict { return onward(o.Pods, o.Holds, o.Denials) }

// From implements decision.Originated.
func (o *EphemeralOutput) From(pkg string) { attribute(pkg, o.Holds, o.Denials) }

// onward is the verdict of an answer that says which places are next.
func onward(names []string, holds []Hold, denials []Denial) decision.Verdict {
	v := decision.Verdict{Word: Wait}
	if len(names) > 0 {
		v.Word = Go
	}
	return told(v, holds, denials)
}

// told adds the reasons to a verdict. A hold of all places is the verdict.
func told(v decision.Verdict, holds []Hold, denials []Denial) decision.Verdict {
	for _, h := range holds {
		v.Reasons = append(v.Reasons, decision.Hold{Rule: h.Rule, Reason: h.Reason, Message: h.Message, Until: h.Until})
		if h.Target == "" {
			v.Word = Held
		}
	}
	for _, d := range denials {
		v.Reasons = append(v.Reasons, decision.Hold{Rule: d.Rule, Reason: d.Reason, Message: d.Message})
	}
	return v
}

// attribute names the package as the rule of what names none.
func attribute(pkg string, holds []Hold, denials []Denial) {
	for i := range holds {
		if holds[i].Rule == "" {
			holds[i].Rule = pkg
		}
	}
	for i := range denials {
		if denials[i].Rule == "" {
			denials[i].Rule = pkg
		}
	}
}
