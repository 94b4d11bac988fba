// SPDX-License-Identifier: Apache-2.0

package decision

// Verdict is an answer in a word, and why.
type Verdict struct {
	Word    string `json:"word"`
	Reasons []Hold `json:"reasons,omitempty"`
}

// OutputWithVerdict is an answer that can be put in a word.
type OutputWithVerdict interface{ ToVerdict() Verdict }

// VerdictOf puts the answer of a record in a word; of an answer that cannot be,
// it is the outcome.
func VerdictOf(r Record) Verdict {
	if j, ok := r.Output.(OutputWithVerdict); ok {
		return j.ToVerdict()
	}
	return Verdict{Word: string(r.Outcome)}
}
