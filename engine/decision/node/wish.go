// SPDX-License-Identifier: Apache-2.0

package node

import "github.com/regatta-sh/regatta/engine/decision"

// Hold stops something from beginning on nodes for now: an element of the rule hold in a
// package extend.node.<any>.
type Hold struct {
	// Rule is the id of the rule. Left out, it is the name of the package.
	Rule string `json:"rule,omitempty"`
	// Reason is CamelCase, for machines. Required.
	Reason string `json:"reason"`
	// Message is a sentence, for people. Required.
	Message string `json:"message"`
	// Where limits a hold of an image to the nodes of these groups, such as {"zone": "b"}.
	// A restart is held all the same.
	Where map[string]string `json:"where,omitempty"`
	// Node limits a hold of an image to one node. node/rank alone reads it.
	Node string `json:"node,omitempty"`
	// Room is how many nodes may begin to pull in spite of the hold; none if unset. A
	// restart is held all the same.
	Room *int `json:"room,omitempty"`
	// Until is when the hold may change by the passing of time alone, as RFC 3339.
	Until string `json:"until,omitempty"`
}

func (h *Hold) allowedRoom() int {
	if h.Room == nil {
		return 0
	}
	return max(*h.Room, 0)
}

// toDecisionHold is the hold as verdicts have it.
func (h *Hold) toDecisionHold() decision.Hold {
	return decision.Hold{Rule: h.Rule, Reason: h.Reason, Message: h.Message, Where: h.Where, Until: h.Until}
}

// Denial is why a container is not restarted, or an image not pulled: an element of the
// rule deny in a package extend.node.<any>.
type Denial struct {
	// Container is the name of the one that is not restarted; empty for all of the request.
	Container string `json:"container,omitempty"`
	// Node is the one that does not pull the image, which node/rank alone reads; empty for
	// all of the job.
	Node string `json:"node,omitempty"`
	// Rule is the id of the rule. Left out, it is the name of the package.
	Rule string `json:"rule,omitempty"`
	// Reason is CamelCase, for machines. Required.
	Reason string `json:"reason"`
	// Message is a sentence, for people. Required.
	Message string `json:"message"`
}

// setDefaultRules names the package as the rule of what names none.
func setDefaultRules(holds []Hold, denials []Denial, pkg string) {
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
