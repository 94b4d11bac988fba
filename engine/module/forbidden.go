// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// forbiddenReason says why policies may not use a function of OPA; it is empty for a function that OPA
// does not have. The reasons are those of allowedBuiltins.
func forbiddenReason(function string) string {
	known := slices.ContainsFunc(ast.Builtins, func(b *ast.Builtin) bool { return b.Name == function })
	if !known {
		return ""
	}
	for _, group := range []struct {
		prefixes []string
		reason   string
	}{
		{[]string{"http.", "net.lookup", "providers.", "json.match_schema", "json.verify_schema"}, "policies have no network: what they are to know is a fact, or data of the bundle"},
		{[]string{"time.now_ns", "io.jwt.decode_verify"}, "policies have no clock: time is a fact, input.now in nanoseconds where a point has it"},
		{[]string{"rand.", "uuid.rfc4122", "io.jwt.encode_sign"}, "policies have no randomness: the same facts have the same answer"},
		{[]string{"opa.", "rego.", "trace"}, "policies do not see what evaluates them"},
	} {
		if slices.ContainsFunc(group.prefixes, func(p string) bool { return strings.HasPrefix(function, p) }) {
			return group.reason
		}
	}
	return "OPA has it, and policies here do not: it may cost far more than its operands are long, or has no use in a decision"
}
