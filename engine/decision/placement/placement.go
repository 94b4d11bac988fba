// SPDX-License-Identifier: Apache-2.0

// Package placement has the decision points of where something goes: which nodes get the pod of a
// BroadcastJob next, which pods the containers of an EphemeralJob, which namespaces have a copy of an
// object, how many pods each subset of a UnitedDeployment gets, and which subset of a WorkloadSpread a
// new pod goes to.
package placement

import "github.com/regatta-sh/regatta/engine/decision"

// Denial keeps an object out of a place: an element of the rule deny in a package
// extend.placement.<any>.
type Denial struct {
	// Target is the name of the place, such as a namespace; empty for all of them.
	Target string `json:"target,omitempty"`
	// Rule is the id of the rule. Left out, it is the name of the package.
	Rule string `json:"rule,omitempty"`
	// Reason is CamelCase, for machines. Required.
	Reason string `json:"reason"`
	// Message is a sentence, for people. Required.
	Message string `json:"message"`
	// Room is how many pods a subset may have in spite of the denial; none if unset. Other
	// places are denied all the same.
	Room *int `json:"room,omitempty"`
}

// allowedRoom is how many pods a denial leaves room for.
func (d *Denial) allowedRoom() int {
	if d.Room == nil {
		return 0
	}
	return *d.Room
}

// Hold leaves everything where it is for now: an element of the rule hold in a package
// extend.placement.<any>.
type Hold struct {
	// Rule is the id of the rule. Left out, it is the name of the package.
	Rule string `json:"rule,omitempty"`
	// Reason is CamelCase, for machines. Required.
	Reason string `json:"reason"`
	// Message is a sentence, for people. Required.
	Message string `json:"message"`
	// Target limits the hold to one place, such as a node of a BroadcastJob or a subset; empty
	// for all of them. placement/distribution holds all of them.
	Target string `json:"target,omitempty"`
	// Until is when the hold may change by the passing of time alone, as RFC 3339.
	Until string `json:"until,omitempty"`
}

// findDenial is the first denial of a place.
func findDenial(denials []Denial, target string) *Denial {
	for i := range denials {
		if t := denials[i].Target; t == "" || t == target {
			return &denials[i]
		}
	}
	return nil
}

// noDecision is the hold of a point that has no answer.
func noDecision(message string) []decision.Hold {
	return []decision.Hold{{Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision, Message: message}}
}
