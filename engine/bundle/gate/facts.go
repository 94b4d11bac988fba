// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"github.com/invopop/jsonschema"
	"github.com/open-policy-agent/opa/v1/ast"
)

// facts is what the input of one point has.
type facts struct{ schema *jsonschema.Schema }

// mayHavePath reports whether a path may be defined in the input. It says no only where the
// path names a field that a struct of the contract has not.
func (f facts) mayHavePath(path ast.Ref) bool {
	s := f.schema
	for _, part := range path {
		switch {
		case s == nil:
			return true
		case s.Type == "array":
			s = s.Items
		case s.Type == "object" && s.Properties.Len() > 0:
			key, ok := part.Value.(ast.String)
			if !ok {
				return true // any of them
			}
			field, ok := s.Properties.Get(string(key))
			if !ok {
				return false
			}
			s = field
		case s.Type == "object":
			s = s.AdditionalProperties
		default:
			return true
		}
	}
	return true
}
