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

// Verdict implements decision.Judged.
func (o RestartsOutput) Verdict() decision.Verdict {
	switch {
	case len(o.Denials) > 0:
		return denied(o.Denials)
	case len(o.Holds) > 0:
		return decision.Verdict{Word: Held, Reasons: o.Holds}
	case len(o.Restart) > 0:
		return decision.Verdict{Word: Restart}
	}
	return decision.Verdict{Word: Wait}
}

// From implements decision.Originated.
func (o *RestartsOutput) From(pkg string) {
	decision.Attribute(o.Holds, pkg)
	attribute(nil, o.Denials, pkg)
}

// Verdict implements decision.Judged.
func (o ImagesOutput) Verdict() decision.Verdict {
	switch {
	case len(o.Denials) > 0:
		return denied(o.Denials)
	case len(o.Holds) > 0:
		return held(o.Holds)
	case o.Begin > 0:
		return decision.Verdict{Word: Begin}
	}
	return decision.Verdict{Word: Wait}
}

// From implements decision.Originated.
func (o *ImagesOutput) From(pkg string) { attribute(o.Holds, o.Denials, pkg) }

// Verdict implements decision.Judged.
func (o RankOutput) Verdict() decision.Verdict {
	switch {
	case len(o.Denials) > 0:
		return denied(o.Denials)
	case len(o.Holds) > 0:
		return held(o.Holds)
	}
	return decision.Verdict{Word: Ranked}
}

// From implements decision.Originated.
func (o *RankOutput) From(pkg string) { attribute(o.Holds, o.Denials, pkg) }

// Verdict implements decision.Judged.
func (o MarkersOutput) Verdict() decision.Verdict {
	if len(o.Holds) > 0 {
		return decision.Verdict{Word: Held, Reasons: o.Holds}
	}
	return decision.Verdict{Word: Marked}
}

// From implements decision.Originated.
func (o *MarkersOutput) From(pkg string) { decision.Attribute(o.Holds, pkg) }

// Verdict implements decision.Judged.
func (o TerminationOutput) Verdict() decision.Verdict {
	switch {
	case len(o.Holds) > 0:
		return decision.Verdict{Word: Held, Reasons: o.Holds}
	case len(o.Stop) > 0 || len(o.Images) > 0:
		return decision.Verdict{Word: Ended}
	}
	return decision.Verdict{Word: Wait}
}

// From implements decision.Originated.
func (o *TerminationOutput) From(pkg string) { decision.Attribute(o.Holds, pkg) }

func denied(denials []Denial) decision.Verdict {
	v := decision.Verdict{Word: Denied}
	for _, d := range denials {
		v.Reasons = append(v.Reasons, decision.Hold{Rule: d.Rule, Reason: d.Reason, Message: d.Message})
	}
	return v
}

func held(holds []Hold) decision.Verdict {
	v := decision.Verdict{Word: Held}
	for i := range holds {
		v.Reasons = append(v.Reasons, holds[i].told())
	}
	return v
}
