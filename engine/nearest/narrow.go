// SPDX-License-Identifier: Apache-2.0

package nearest

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/decision"
)

// narrowToHold limits a clause that is true to one hold: a rule may hold many groups and pods, each
// for different facts. A clause that does not produce this hold stays as it is.
func (f *finder) narrowToHold(fr *frame, h decision.Hold) {
	head := fr.clause.Head.Key
	if head == nil {
		return
	}
	fields, ok := head.Value.(ast.Object)
	if !ok {
		return
	}
	var only ast.Body
	if where := fields.Get(ast.StringTerm("where")); where != nil && len(h.Where) > 0 {
		groups := ast.NewObject()
		for _, dimension := range slices.Sorted(maps.Keys(h.Where)) {
			groups.Insert(ast.StringTerm(dimension), ast.StringTerm(h.Where[dimension]))
		}
		only = append(only, ast.Equality.Expr(where, ast.NewTerm(groups)))
	}
	if pod := fields.Get(ast.StringTerm("pod")); pod != nil && h.Pod != "" {
		only = append(only, ast.Equality.Expr(pod, ast.StringTerm(h.Pod)))
	}
	if namespace := fields.Get(ast.StringTerm("namespace")); namespace != nil && h.Namespace != "" {
		only = append(only, ast.Equality.Expr(namespace, ast.StringTerm(h.Namespace)))
	}
	if len(only) == 0 {
		return
	}
	before := fr.after
	fr.after = slices.Concat(before, only)
	if !f.isClauseTrue(fr) {
		fr.after = before
	}
}
