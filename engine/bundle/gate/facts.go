// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"github.com/invopop/jsonschema"
	"github.com/open-policy-agent/opa/v1/ast"
)

// facts describes the input of one point.
type facts struct{ schema *jsonschema.Schema }

// mayHavePath reports whether a path may be defined in the input. It is false only if the path names a
// field that a struct of the contract does not have.
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
				return true // true if any alternative may have it
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
