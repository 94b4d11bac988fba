// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"fmt"
	"math/big"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown/builtins"
)

// guards are the functions that are replaced, with what is looked at before a call.
var guards = map[string]guard{
	// They compare.
	"equal": compared, "neq": compared, "lt": compared, "lte": compared, "gt": compared, "gte": compared,
	"internal.member_2": members, "internal.member_3": members,
	"max": values, "min": values, "sort": values, "sum": values,
	"minus": values, "set_diff": values, "and": values, "or": values, "intersection": values, "union": values,
	"graph.reachable": values, "object.get": keyed, "object.remove": removed,
	// They join and copy.
	"array.concat": values, "array.flatten": values, "object.union": values, "object.union_n": values,
	"internal.test_case": values,
	// They calculate.
	"plus": numbers, "mul": numbers, "div": numbers, "rem": numbers,
	"abs": numbers, "ceil": numbers, "floor": numbers, "round": numbers, "format_int": numbers,
	"numbers.range": elements, "numbers.range_step": elements,
	"array.slice": numbers,
	// They write as text.
	"sprintf": formatted, "internal.print": texts, "internal.template_string": texts, "concat": concatenated,
	// They read texts once, and answer no more than a few times as much.
	"contains": texts, "endswith": texts, "startswith": texts, "lower": texts, "upper": texts,
	"substring": texts, "strings.count": texts, "strings.reverse": texts,
	"strings.any_prefix_match": texts, "strings.any_suffix_match": texts,
	"trim_prefix": texts, "trim_suffix": texts, "trim_space": texts,
	"glob.quote_meta": texts, "semver.compare": texts, "semver.is_valid": texts,
	"base64.decode": texts, "base64.encode": texts, "base64.is_valid": texts,
	"base64url.decode": texts, "base64url.encode": texts, "base64url.encode_no_pad": texts,
	"hex.decode": texts, "hex.encode": texts, "urlquery.decode": texts, "urlquery.encode": texts,
	"crypto.sha256": texts, "to_number": numerals, "units.parse": numerals, "units.parse_bytes": numerals,
	"net.cidr_contains": texts, "net.cidr_intersects": texts, "net.cidr_is_valid": texts,
	"time.add_date": texts, "time.clock": texts, "time.date": texts, "time.diff": texts, "time.format": texts,
	"time.parse_duration_ns": texts, "time.parse_ns": texts, "time.parse_rfc3339_ns": texts, "time.weekday": texts,
	"regex.is_valid": pattern,
	// They make many of one, or search at each place.
	"json.unmarshal": parsedNumbers, "json.is_valid": parsed,
	"split": divided, "strings.split_n": divided,
	"replace": replaced, "strings.replace_n": replacedAll,
	"indexof": searched, "indexof_n": searchedAll, "trim": searched, "trim_left": searched, "trim_right": searched,
	"regex.match": matched, "regex.find_n": found, "regex.split": found,
	"regex.find_all_string_submatch_n": found, "regex.replace": matchedAndReplaced,
	"glob.match": globbed,
}

// looksAtKeys has the functions that measure a key alone: what they answer is a part of
// another operand.
var looksAtKeys = map[string]bool{"object.get": true, "object.remove": true, "array.slice": true}

// Constant says why a function is as it was: what it costs does not depend on what
// the parts of its operands are, and it makes nothing that is larger than they are.
var Constant = map[string]string{
	"assign": "no function: the evaluator binds a variable", "eq": "no function: the evaluator unifies, and bundles may not",
	"print":      "no function: the compiler takes it out, or makes internal.print of it",
	"count":      "the number of elements is known; of a text it is counted once",
	"type_name":  "looks at the kind of the value alone",
	"is_array":   "looks at the kind of the value alone",
	"is_boolean": "looks at the kind of the value alone",
	"is_null":    "looks at the kind of the value alone",
	"is_number":  "looks at the kind of the value alone",
	"is_object":  "looks at the kind of the value alone",
	"is_set":     "looks at the kind of the value alone",
	"is_string":  "looks at the kind of the value alone",

	"array.reverse": "as long as its operand, with the same elements",
	"object.keys":   "as long as its operand, with the same keys",
}

// isScalar is true of what has no parts.
func isScalar(t *ast.Term) bool { return ast.IsScalar(t.Value) }

// values are compared or copied with all that is in them.
func values(c *call) error {
	m := meter{maxNodes: MaxNodes, maxBytes: MaxText, cancel: c.cancel}
	for _, t := range c.operands {
		if n, ok := t.Value.(ast.Number); ok {
			if err := CheckNumber(n); err != nil {
				return err
			}
		} else if !isScalar(t) && !m.count(t.Value) {
			return m.err
		}
	}
	return nil
}

// compared are equal or not at once if one of them has no parts, or one is a list and
// the other none, or has no elements.
func compared(c *call) error {
	a, b := c.operands[0], c.operands[1]
	if isScalar(a) || isScalar(b) {
		return numbers(c)
	}
	x, isArray := a.Value.(*ast.Array)
	y, isToo := b.Value.(*ast.Array)
	if isArray != isToo || isArray && (x.Len() == 0 || y.Len() == 0) {
		return nil
	}
	return values(c)
}

// members are looked for in the last operand: by a hash where they are elements of a set
// or keys, and else by comparing them with one value after the other. A comparison ends
// with the smaller of two. So what is measured is what is looked for, and the collection
// only where that times its length is beyond the limits.
func members(c *call) error {
	last := len(c.operands) - 1
	m := meter{maxNodes: MaxNodes, maxBytes: MaxText, cancel: c.cancel}
	if err := m.measure(c.operands[:last]...); err != nil {
		return err
	}
	collection := c.operands[last]
	list, ok := collection.Value.(interface{ Len() int })
	if !ok {
		return nil
	}
	most := MaxNodes
	if _, isSet := collection.Value.(ast.Set); isSet || last == 2 {
		most = MaxSteps // it is compared with what has the same hash
	} else if err := c.listedNumbers(collection); err != nil {
		return err
	}
	if times(m.nodes, list.Len()) <= most && times(m.bytes, list.Len()) <= MaxSteps {
		return nil
	}
	return m.measure(collection)
}

// listedNumbers are compared with a number that is looked for.
func (c *call) listedNumbers(list *ast.Term) error {
	if _, ok := c.operands[0].Value.(ast.Number); !ok {
		return nil
	}
	var err error
	until := func(t *ast.Term) bool {
		if n, ok := t.Value.(ast.Number); ok {
			err = CheckNumber(n)
		}
		return err != nil
	}
	switch v := list.Value.(type) {
	case *ast.Array:
		v.Until(until)
	case ast.Object:
		v.Until(func(_, t *ast.Term) bool { return until(t) })
	}
	return err
}

// keyed are objects whose keys are looked for: what a key has in it is compared.
func keyed(c *call) error {
	m := meter{maxNodes: MaxNodes, maxBytes: MaxText, cancel: c.cancel}
	return m.measure(c.operands[1])
}

// removed are keys of objects, in a list, a set, or an object of which the values count
// for nothing.
func removed(c *call) error {
	keys, ok := c.operands[1].Value.(ast.Object)
	if !ok {
		return keyed(c)
	}
	m := meter{maxNodes: MaxNodes, maxBytes: MaxText, cancel: c.cancel}
	return m.measure(keys.Keys()...)
}

// numbers are calculated with.
func numbers(c *call) error {
	for _, t := range c.operands {
		if n, ok := t.Value.(ast.Number); ok {
			if err := CheckNumber(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// elements are as many as there are numbers from one to another.
func elements(c *call) error {
	if err := numbers(c); err != nil {
		return err
	}
	n := [3]*big.Int{2: big.NewInt(1)}
	for i, t := range c.operands {
		v, ok := t.Value.(ast.Number)
		if !ok {
			return nil // the function says what is wrong with it
		}
		x, err := builtins.NumberToInt(v)
		if err != nil {
			return nil
		}
		n[i] = x
	}
	if n[2].Sign() <= 0 {
		return nil
	}
	distance := new(big.Int).Sub(n[1], n[0])
	if distance.Abs(distance).Quo(distance, n[2]); distance.Cmp(big.NewInt(MaxPrinted)) >= 0 {
		return fmt.Errorf("from %s to %s there are more than %d numbers, which is the limit", n[0], n[1], MaxPrinted)
	}
	return nil
}
