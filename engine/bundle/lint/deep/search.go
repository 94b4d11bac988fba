// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle/lint"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/engine/prove"
)

// maxText is how many bytes of a condition are shown.
const maxText = 123

// NoteIdleRules returns notes of the rules that a search found no input for, but for those of which it was found
// before that they are never true.
func NoteIdleRules(idle []prove.IdleRule, found []lint.Finding) []lint.Finding {
	var out []lint.Finding
	for _, r := range idle {
		if slices.ContainsFunc(found, func(f lint.Finding) bool {
			return f.Rule == NeverTrue && f.File == r.File && f.Row >= r.Row && f.Row <= r.EndRow
		}) {
			continue
		}
		at := &ast.Location{File: r.File, Row: r.ConditionRow, Col: r.ConditionCol}
		p := module.ProblemAt(at, "no input among %d that were tried makes %s true: `%s` was true of none of them together with the conditions before it. Others may be: this is no proof",
			r.Worlds, r.Name, decision.TruncateText(r.Condition, maxText))
		out = append(out, lint.Finding{Rule: NeverSeen, Note: true, Problem: p})
	}
	return lint.SortFindings(out)
}
