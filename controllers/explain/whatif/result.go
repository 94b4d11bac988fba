// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"slices"
	"strings"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// Result is what would change if some facts were others.
type Result struct {
	// Facts are the changed facts.
	Facts []Fact `json:"facts,omitempty"`
	// Decisions are the decisions that depend on such facts, made again with them. Of each, the answer is compared with
	// that of the same decision with its facts as they are.
	Decisions []Decision `json:"decisions,omitempty"`
	// Invalid says which change cannot be made and why. Nothing was decided again then.
	Invalid string `json:"invalid,omitempty"`
	// Error says why nothing was decided again although the changes are valid.
	Error string `json:"error,omitempty"`
}

// Fact is a fact that was changed, with both values: text as it is, and all else as JSON. A nil value means that the
// fact is not there.
type Fact struct {
	Name string  `json:"name"`
	Was  *string `json:"was,omitempty"`
	Is   *string `json:"is,omitempty"`
	// Hidden is true if Was is left out, since the user may not be allowed to read the object that has the fact.
	Hidden bool `json:"hidden,omitempty"`
}

// HideValues removes the values that facts had, but for facts that the answer shows anyway: those with these names, and what is below them. An
// answer about a pod is for users who may get the pod, and the facts of its decision are of other objects too.
func (r *Result) HideValues(shown []string) {
	for i := range r.Facts {
		f := &r.Facts[i]
		isShown := slices.ContainsFunc(shown, func(name string) bool {
			below, ok := strings.CutPrefix(f.Name, name)
			return ok && (below == "" || below[0] == '.' || below[0] == '[')
		})
		if !isShown {
			f.Was, f.Hidden = nil, true
		}
	}
}

// Decision is one decision, with the facts as they are and with the changed ones.
type Decision struct {
	Point decision.Name `json:"point"`
	// Changed is false if both answers are equal.
	Changed bool `json:"changed"`
	// Was and Is are the answers in a word, such as Hold and Go; the outcome where nothing was decided.
	Was string `json:"was"`
	Is  string `json:"is"`
	// Gone are the reasons of the first answer that the second one does not have. New are those that only the second one has,
	// and Kept those that both have, as the second one has them. Their facts are left out. More is how many more there are of all.
	Gone []record.Reason `json:"gone,omitempty"`
	New  []record.Reason `json:"new,omitempty"`
	Kept []record.Reason `json:"kept,omitempty"`
	More int             `json:"more,omitempty"`
	// Fields are other parts of the answer that differ.
	Fields []Fact `json:"fields,omitempty"`
	// Error says why there is no decision with the changed facts; its answer is then the fallback.
	Error string `json:"error,omitempty"`
}

// HasChanges reports whether any of the decisions would be another.
func (r *Result) HasChanges() bool {
	for i := range r.Decisions {
		if r.Decisions[i].Changed {
			return true
		}
	}
	return false
}
