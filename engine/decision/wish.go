// SPDX-License-Identifier: Apache-2.0

package decision

// Deny is a user's wish that a request be refused, and why: an element of the
// rule deny in a package extend.protection.<any>. One that is not of this form
// refuses all the same.
type Deny struct {
	// Rule is the id of the rule. Left out, it is the name of the package.
	Rule string `json:"rule,omitempty"`
	// Reason is CamelCase, for machines. Required.
	Reason string `json:"reason"`
	// Message is a sentence, for people. Required.
	Message string `json:"message"`
	// Until is when the answer may change by the passing of time alone, as RFC
	// 3339.
	Until string `json:"until,omitempty"`
}

// Exemption lets a request through that would be refused: an element of the rule
// exempt. One that is not of this form has no effect.
type Exemption struct {
	// Rule is the id of the rule. Left out, it is the name of the package.
	Rule string `json:"rule,omitempty"`
	// Reason is CamelCase, for machines. Required.
	Reason string `json:"reason"`
	// Message is a sentence, for people. Required.
	Message string `json:"message"`
}
