// SPDX-License-Identifier: Apache-2.0

package node

import "github.com/regatta-sh/regatta/engine/decision"

// Words of verdicts.
const (
	Restart = "Restart"
	Held    = "Hold"
	Denied  = "Deny"
	Wait    = "Wait"
	Begin   = "Begin"
	Ranked  = "Ranked"
	Marked  = "Mark"
	Ended   = "End"
)

// ToVerdict implements decision.Judged.
func (o RestartsOutput) ToVerdict() decision.Verdict {
	switch {
	case len(o.Denials) > 0:
		return denialVerdict(o.Denials)
	case len(o.Holds) > 0:
		return decision.Verdict{Word: Held, Reasons: o.Holds}
	case len(o.Restart) > 0:
		return decision.Verdict{Word: Restart}
	}
	return decision.Verdict{Word: Wait}
}

// SetDefaultRules implements decision.Originated.
func (o *RestartsOutput) SetDefaultRules(pkg string) {
	decision.SetDefaultRules(o.Holds, pkg)
	setDefaultRules(nil, o.Denials, pkg)
}

// ToVerdict implements decision.Judged.
func (o ImagesOutput) ToVerdict() decision.Verdict {
	switch {
	case len(o.Denials) > 0:
		return denialVerdict(o.Denials)
	case len(o.Holds) > 0:
		return holdVerdict(o.Holds)
	case o.Begin > 0:
		return decision.Verdict{Word: Begin}
	}
	return decision.Verdict{Word: Wait}
}

// SetDefaultRules implements decision.Originated.
func (o *ImagesOutput) SetDefaultRules(pkg string) { setDefaultRules(o.Holds, o.Denials, pkg) }

// ToVerdict implements decision.Judged.
func (o RankOutput) ToVerdict() decision.Verdict {
	switch {
	case len(o.Denials) > 0:
		return denialVerdict(o.Denials)
	case len(o.Holds) > 0:
		return holdVerdict(o.Holds)
	}
	return decision.Verdict{Word: Ranked}
}

// SetDefaultRules implements decision.Originated.
func (o *RankOutput) SetDefaultRules(pkg string) { setDefaultRules(o.Holds, o.Denials, pkg) }

// ToVerdict implements decision.Judged.
func (o MarkersOutput) ToVerdict() decision.Verdict {
	if len(o.Holds) > 0 {
		return decision.Verdict{Word: Held, Reasons: o.Holds}
	}
	return decision.Verdict{Word: Marked}
}

// SetDefaultRules implements decision.Originated.
func (o *MarkersOutput) SetDefaultRules(pkg string) { decision.SetDefaultRules(o.Holds, pkg) }

// ToVerdict implements decision.Judged.
func (o TerminationOutput) ToVerdict() decision.Verdict {
	switch {
	case len(o.Holds) > 0:
		return decision.Verdict{Word: Held, Reasons: o.Holds}
	case len(o.Stop) > 0 || len(o.Images) > 0:
		return decision.Verdict{Word: Ended}
	}
	return decision.Verdict{Word: Wait}
}

// SetDefaultRules implements decision.Originated.
func (o *TerminationOutput) SetDefaultRules(pkg string) { decision.SetDefaultRules(o.Holds, pkg) }

func denialVerdict(denials []Denial) decision.Verdict {
	v := decision.Verdict{Word: Denied}
	for _, d := range denials {
		v.Reasons = append(v.Reasons, decision.Hold{Rule: d.Rule, Reason: d.Reason, Message: d.Message})
	}
	return v
}

func holdVerdict(holds []Hold) decision.Verdict {
	v := decision.Verdict{Word: Held}
	for i := range holds {
		v.Reasons = append(v.Reasons, holds[i].toDecisionHold())
	}
	return v
}
