// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// relevantRules returns the rules of bundles, the rules that refer to one of these, and all that either
// refer to.
func relevantRules(rules []*ast.Rule, isOwn func(*ast.Rule) bool) []*ast.Rule {
	uses := map[*ast.Rule][]*ast.Rule{}
	byPath := map[string][]*ast.Rule{}
	for _, r := range rules {
		byPath[ruleRef(r).String()] = append(byPath[ruleRef(r).String()], r)
	}
	relevant := map[*ast.Rule]bool{}
	var next []*ast.Rule
	for _, r := range rules {
		known := map[string]bool{}
		reads := false
		ast.WalkRefs(r, func(ref ast.Ref) bool {
			text := ref.String()
			if !ref.HasPrefix(ast.DefaultRootRef) || known[text] {
				return false
			}
			known[text] = true
			for _, all := range byPath {
				if _, ok := matchesRulePath(ref, all[0]); ok {
					uses[r] = append(uses[r], all...)
					reads = reads || slices.ContainsFunc(all, isOwn)
				}
			}
			return false
		})
		if reads || isOwn(r) {
			next = append(next, r)
		}
	}
	for len(next) > 0 {
		r := next[len(next)-1]
		if next = next[:len(next)-1]; !relevant[r] {
			relevant[r] = true
			next = append(next, uses[r]...)
		}
	}
	var out []*ast.Rule
	for _, r := range rules {
		if relevant[r] {
			out = append(out, r)
		}
	}
	return out
}
