// SPDX-License-Identifier: Apache-2.0

package placement

import "github.com/regatta-sh/regatta/engine/decision"

// Words of verdicts.
const (
	Go   = "Go"
	Held = "Hold"
	Wait = "Wait"
)

// ToVerdict implements decision.Judged.
func (o BroadcastOutput) ToVerdict() decision.Verdict {
	return nextVerdict(o.Nodes, o.Holds, o.Denials)
}

// SetDefaultRules implements decision.Originated.
func (o *BroadcastOutput) SetDefaultRules(pkg string) { setDefaultRules(pkg, o.Holds, o.Denials) }

// ToVerdict implements decision.Judged.
func (o AllocationOutput) ToVerdict() decision.Verdict {
	return addReasons(decision.Verdict{Word: Go}, o.Holds, o.Denials)
}

// SetDefaultRules implements decision.Originated.
func (o *AllocationOutput) SetDefaultRules(pkg string) { setDefaultRules(pkg, o.Holds, o.Denials) }

// ToVerdict implements decision.Judged.
func (o EphemeralOutput) ToVerdict() decision.Verdict { return nextVerdict(o.Pods, o.Holds, o.Denials) }

// SetDefaultRules implements decision.Originated.
func (o *EphemeralOutput) SetDefaultRules(pkg string) { setDefaultRules(pkg, o.Holds, o.Denials) }

// nextVerdict is the verdict of an answer that says which places are next.
func nextVerdict(names []string, holds []Hold, denials []Denial) decision.Verdict {
	v := decision.Verdict{Word: Wait}
	if len(names) > 0 {
		v.Word = Go
	}
	return addReasons(v, holds, denials)
}

// addReasons adds the reasons to a verdict. A hold of all places is the verdict.
func addReasons(v decision.Verdict, holds []Hold, denials []Denial) decision.Verdict {
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

// setDefaultRules names the package as the rule of what names none.
func setDefaultRules(pkg string, holds []Hold, denials []Denial) {
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
