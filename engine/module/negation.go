// SPDX-License-Identifier: Apache-2.0

package module

import "github.com/open-policy-agent/opa/v1/ast"

// UnimportedNot returns the location of the first `not` of a module that does not import it. OPA,
// unlike this engine, reads it as in v1: undefined if its operand is. It is nil if there is none.
func UnimportedNot(m *ast.Module) *ast.Location {
	for _, i := range m.Imports {
		switch i.Path.String() {
		case "future.keywords.not", "future.keywords[\"not\"]", "rego.v2":
			return nil
		}
	}
	var first *ast.Location
	ast.WalkExprs(m, func(x *ast.Expr) bool {
		if x.IsNegated() && first == nil {
			first = x.Location
		}
		return first != nil
	})
	return first
}
