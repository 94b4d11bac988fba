// SPDX-License-Identifier: Apache-2.0

package injection

import "github.com/regatta-sh/regatta/engine/decision"

// ExtensionResult is a rule's wish about a SidecarSet of a pod: an element of the rule skip or add in
// a package extend.injection.<any>. One that is not of this form has no effect.
type ExtensionResult struct {
	// Rule is the id of the rule. Left out, it is the name of the package.
	Rule string `json:"rule,omitempty"`
	// Set is the name of the SidecarSet. Required.
	Set string `json:"set"`
	// Reason is CamelCase, for machines. Required.
	Reason string `json:"reason"`
	// Message is a sentence, for people. Required.
	Message string `json:"message"`
}

// Settings are the knobs of injection: the rule settings.
type Settings struct {
	// First are names of SidecarSets whose containers come before those of all others, in
	// this order.
	First []string `json:"first,omitempty"`
}

// Words of verdicts.
const (
	Give   = "Inject"
	Refuse = "Refuse"
	Take   = "Take"
	Leave  = "Leave"
)

// ToVerdict implements decision.Judged.
func (o SidecarsOutput) ToVerdict() decision.Verdict {
	if len(o.Refuse) > 0 {
		return decision.Verdict{Word: Refuse, Reasons: o.Refuse}
	}
	var reasons []decision.Hold
	for _, i := range o.Inject {
		reasons = append(reasons, decision.Hold{Rule: i.Rule, Reason: i.Reason, Message: i.Message})
	}
	for _, l := range o.Left {
		reasons = append(reasons, decision.Hold{Rule: l.Rule, Reason: l.Reason, Message: l.Message})
	}
	return decision.Verdict{Word: Give, Reasons: reasons}
}

// ToVerdict implements decision.Judged.
func (o ResourcesOutput) ToVerdict() decision.Verdict {
	if len(o.Refuse) > 0 {
		return decision.Verdict{Word: Refuse, Reasons: o.Refuse}
	}
	return decision.Verdict{Word: Give}
}

// ToVerdict implements decision.Judged.
func (o LivenessOutput) ToVerdict() decision.Verdict {
	if len(o.Take) > 0 {
		return decision.Verdict{Word: Take}
	}
	return decision.Verdict{Word: Leave}
}

// SetDefaultRules implements decision.Originated.
func (o *SidecarsOutput) SetDefaultRules(pkg string) {
	for i := range o.Inject {
		orElse(&o.Inject[i].Rule, pkg)
	}
	for i := range o.Left {
		orElse(&o.Left[i].Rule, pkg)
	}
	decision.SetDefaultRules(o.Refuse, pkg)
}

// SetDefaultRules implements decision.Originated.
func (o *ResourcesOutput) SetDefaultRules(pkg string) {
	decision.SetDefaultRules(o.Refuse, pkg)
}

func orElse(field *string, value string) {
	if *field == "" {
		*field = value
	}
}
