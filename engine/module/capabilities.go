// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// PolicyCapabilities is what a policy may use: Rego v2 and an allow-list of built-in
// functions. A list of forbidden functions would miss new ones with every release of OPA; an
// allow-list can only be too short.
func PolicyCapabilities() *ast.Capabilities {
	all := ast.CapabilitiesForThisVersion(ast.CapabilitiesRegoVersion(ast.RegoV2))
	allowed := allowedBuiltins()
	all.Builtins = slices.DeleteFunc(all.Builtins, func(b *ast.Builtin) bool {
		return b.Nondeterministic || !slices.Contains(allowed, b.Name)
	})
	// An empty list, unlike nil, prevents the type checker from fetching remote schemas.
	all.AllowNet = []string{}
	return all
}

// allowedBuiltins is the allow-list. Left out, by reason:
//
//   - Network: http.send, net.lookup_ip_addr, json.match_schema and
//     json.verify_schema (they fetch remote references), providers.aws.*.
//   - Clock: time.now_ns, io.jwt.decode_verify (compares exp with the clock).
//     Time is a fact.
//   - Randomness: rand.intn, uuid.rfc4122, io.jwt.encode_sign*.
//   - Environment: opa.runtime; rego.parse_module, rego.metadata.*, trace,
//     which show a policy its own machinery.
//   - Cannot be cancelled, and cost more than their input is long:
//     graph.reachable_paths (exponential), net.cidr_expand (2^128 results),
//     net.cidr_merge and net.cidr_contains_matches (quadratic), bits.* (a shift
//     by 2^40 allocates it), walk (a value of n shared nodes has 2^n paths),
//     regex.globs_match (intersects two patterns), regex.template_match,
//     graphql.*, crypto.x509.*, crypto.parse_private_keys and io.jwt.* (parsers
//     and big-number arithmetic on untrusted text), strings.render_template
//     (a second language, with loops), yaml.unmarshal (aliases amplify), urlquery.*_object,
//     json.patch, json.filter and json.remove (paths times nodes),
//     json.marshal* (writes out what was shared), product (the digits of a
//     number grow without an end), object.filter and object.subset (deep).
//   - Of no use to a decision: crypto.hmac.*, crypto.md5, crypto.sha1, uuid.parse,
//     uri.*, cast_* and re_match (deprecated; strict mode refuses them anyway).
//
// The cost of the allowed functions is linear in their operands, or nearly so. Package bounded limits
// operands and results. So a policy needs many evaluated expressions to do harm, each of which checks
// for cancellation.
func allowedBuiltins() []string {
	return []string{
		// Operators, and functions that the compiler rewrites to.
		"assign", "eq", "equal", "neq", "lt", "lte", "gt", "gte",
		"plus", "minus", "mul", "div", "rem", "and", "or",
		"internal.member_2", "internal.member_3", "internal.print",
		"internal.test_case", "internal.template_string", "print",
		// Numbers and aggregates.
		"abs", "ceil", "floor", "round", "numbers.range", "numbers.range_step",
		"count", "max", "min", "sum", "sort", "to_number", "format_int",
		"units.parse", "units.parse_bytes",
		// Arrays, objects and sets.
		"array.concat", "array.flatten", "array.reverse", "array.slice",
		"object.get", "object.keys", "object.remove", "object.union", "object.union_n",
		"set_diff", "intersection", "union", "graph.reachable",
		// Text.
		"concat", "contains", "endswith", "startswith", "indexof", "indexof_n",
		"lower", "upper", "replace", "split", "sprintf", "substring",
		"strings.any_prefix_match", "strings.any_suffix_match", "strings.count",
		"strings.replace_n", "strings.reverse", "strings.split_n",
		"trim", "trim_left", "trim_prefix", "trim_right", "trim_space", "trim_suffix",
		"regex.match", "regex.is_valid", "regex.split", "regex.find_n",
		"regex.find_all_string_submatch_n", "regex.replace",
		"glob.match", "glob.quote_meta", "semver.compare", "semver.is_valid",
		// Encodings and digests.
		"base64.decode", "base64.encode", "base64.is_valid",
		"base64url.decode", "base64url.encode", "base64url.encode_no_pad",
		"hex.decode", "hex.encode", "json.unmarshal", "json.is_valid",
		"urlquery.decode", "urlquery.encode", "crypto.sha256",
		// Types.
		"is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set",
		"is_string", "type_name",
		// Networks.
		"net.cidr_contains", "net.cidr_intersects", "net.cidr_is_valid",
		// Time that is a fact.
		"time.add_date", "time.clock", "time.date", "time.diff", "time.format",
		"time.parse_duration_ns", "time.parse_ns", "time.parse_rfc3339_ns", "time.weekday",
	}
}
