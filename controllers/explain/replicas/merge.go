// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"slices"

	"github.com/regatta-sh/regatta/controllers/explain"
)

// MergeReplies takes the newest answer about an object, and all refusals, the latest first. If there
// are only refusals, the latest is the answer.
func MergeReplies(replies []explain.Reply) explain.Reply {
	var out explain.Reply
	found := false
	var refusals []explain.Answer
	for _, r := range replies {
		switch {
		case r.Answer.Request != nil:
			refusals = append(refusals, r.Answer)
		case !found || r.Answer.Decided.After(out.Answer.Decided):
			out, found = r, true
		}
		refusals = append(refusals, r.Refusals...) // they are older than the answer if that is a refusal
	}
	slices.SortStableFunc(refusals, func(a, b explain.Answer) int { return b.Decided.Compare(a.Decided) })
	if !found && len(refusals) > 0 {
		out.Answer, refusals = refusals[0], refusals[1:]
	}
	out.Refusals = refusals
	return out
}
