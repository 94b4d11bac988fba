// SPDX-License-Identifier: Apache-2.0

package decision

// MissingFact is a fact of an input that could not be read. It differs from a fact that is empty: a rule
// that reads it cannot know what it would say.
type MissingFact struct {
	// Fact is its path in the input, such as workload.namespaceLabels.
	Fact string `json:"fact"`
	// Reason is a word in CamelCase for why it is missing.
	Reason string `json:"reason"`
	// Message is a whole sentence that says why, and what to do.
	Message string `json:"message"`
}

// FindMissingFact returns a fact of an input that is missing, if there is one.
func FindMissingFact(in any) (MissingFact, bool) {
	known, ok := in.(InputWithMissingFacts)
	if !ok {
		return MissingFact{}, false
	}
	missing := known.ListMissingFacts()
	if len(missing) == 0 {
		return MissingFact{}, false
	}
	return missing[0], true
}

// UndecidedHold returns the hold of a fallback. Where a fact of the input is missing, it has the reason and the message of that
// fact.
func UndecidedHold(message string, in any) Hold {
	h := Hold{Rule: RuleEngine, Reason: ReasonNoDecision, Message: message}
	if missing, ok := FindMissingFact(in); ok {
		h.Reason, h.Message = missing.Reason, missing.Message
	}
	return h
}

// InputWithMissingFacts is an input some facts of which may be missing. If one is, and rules of users take part in
// the point for the subject, no decision is made, and the strict fallback of the point answers. The built-in
// policies read no fact that may be missing, so on their own they decide.
type InputWithMissingFacts interface {
	// ListMissingFacts returns the facts that are missing, nil if none is.
	ListMissingFacts() []MissingFact
}
