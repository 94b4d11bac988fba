// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"fmt"
	"math/big"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown/builtins"
)

// guards are the functions that are replaced, with the checks before a call.
var guards = map[string]guard{
	// They compare.
	"equal": checkComparison, "neq": checkComparison, "lt": checkComparison, "lte": checkComparison, "gt": checkComparison, "gte": checkComparison,
	"internal.member_2": checkMembership, "internal.member_3": checkMembership,
	"max": checkValues, "min": checkValues, "sort": checkValues, "sum": checkValues,
	"minus": checkValues, "set_diff": checkValues, "and": checkValues, "or": checkValues, "intersection": checkValues, "union": checkValues,
	"graph.reachable": checkValues, "object.get": checkKeyLookup, "object.remove": checkKeyRemoval,
	// They join and copy.
	"array.concat": checkValues, "array.flatten": checkValues, "object.union": checkValues, "object.union_n": checkValues,
	"internal.test_case": checkValues,
	// They calculate.
	"plus": checkNumbers, "mul": checkNumbers, "div": checkNumbers, "rem": checkNumbers,
	"abs": checkNumbers, "ceil": checkNumbers, "floor": checkNumbers, "round": checkNumbers, "format_int": checkNumbers,
	"numbers.range": checkNumberRange, "numbers.range_step": checkNumberRange,
	"array.slice": checkNumbers,
	// They write as text.
	"sprintf": checkFormat, "internal.print": checkTexts, "internal.template_string": checkTexts, "concat": checkConcatenation,
	// They read texts once, and return at most a few times as much.
	"contains": checkTexts, "endswith": checkTexts, "startswith": checkTexts, "lower": checkTexts, "upper": checkTexts,
	"substring": checkTexts, "strings.count": checkTexts, "strings.reverse": checkTexts,
	"strings.any_prefix_match": checkTexts, "strings.any_suffix_match": checkTexts,
	"trim_prefix": checkTexts, "trim_suffix": checkTexts, "trim_space": checkTexts,
	"glob.quote_meta": checkTexts, "semver.compare": checkTexts, "semver.is_valid": checkTexts,
	"base64.decode": checkTexts, "base64.encode": checkTexts, "base64.is_valid": checkTexts,
	"base64url.decode": checkTexts, "base64url.encode": checkTexts, "base64url.encode_no_pad": checkTexts,
	"hex.decode": checkTexts, "hex.encode": checkTexts, "urlquery.decode": checkTexts, "urlquery.encode": checkTexts,
	"crypto.sha256": checkTexts, "to_number": checkNumeral, "units.parse": checkNumeral, "units.parse_bytes": checkNumeral,
	"net.cidr_contains": checkTexts, "net.cidr_intersects": checkTexts, "net.cidr_is_valid": checkTexts,
	"time.add_date": checkTexts, "time.clock": checkTexts, "time.date": checkTexts, "time.diff": checkTexts, "time.format": checkTexts,
	"time.parse_duration_ns": checkTexts, "time.parse_ns": checkTexts, "time.parse_rfc3339_ns": checkTexts, "time.weekday": checkTexts,
	"regex.is_valid": checkPattern,
	// They make many values from one, or search at each place.
	"json.unmarshal": parsedNumbers, "json.is_valid": checkParsedText,
	"split": checkSplit, "strings.split_n": checkSplit,
	"replace": checkReplacement, "strings.replace_n": replacedAll,
	"indexof": checkSearch, "indexof_n": searchedAll, "trim": checkSearch, "trim_left": checkSearch, "trim_right": checkSearch,
	"regex.match": checkRegexMatch, "regex.find_n": checkRegexFind, "regex.split": checkRegexFind,
	"regex.find_all_string_submatch_n": checkRegexFind, "regex.replace": matchedAndReplaced,
	"glob.match": checkGlobMatch,
}

// looksAtKeys has the functions that measure only a key: their result is a part of another operand.
var looksAtKeys = map[string]bool{"object.get": true, "object.remove": true, "array.slice": true}

// Constant says why a function is not replaced: its cost does not depend on the parts of its operands,
// and its result is not larger than they are.
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

// isScalar is true for a value without parts.
func isScalar(t *ast.Term) bool { return ast.IsScalar(t.Value) }

// checkValues bounds operands that are compared or copied with all their parts.
func checkValues(c *call) error {
	m := meter{maxNodes: MaxNodes, maxBytes: MaxText, cancel: c.cancel}
	for _, t := range c.operands {
		if n, ok := t.Value.(ast.Number); ok {
			if err := CheckNumber(n); err != nil {
				return err
			}
		} else if !isScalar(t) && !m.countValue(t.Value) {
			return m.err
		}
	}
	return nil
}

// checkComparison bounds a comparison. It costs nothing if one operand has no parts, if only one of
// them is an array, or if an array is empty.
func checkComparison(c *call) error {
	a, b := c.operands[0], c.operands[1]
	if isScalar(a) || isScalar(b) {
		return checkNumbers(c)
	}
	x, isArray := a.Value.(*ast.Array)
	y, isToo := b.Value.(*ast.Array)
	if isArray != isToo || isArray && (x.Len() == 0 || y.Len() == 0) {
		return nil
	}
	return checkValues(c)
}

// checkMembership bounds a search for operands in the last one: by a hash for elements of a set and
// for keys, and otherwise by comparing them with one value after the other. A comparison ends with the
// smaller of two values. So the operands that are searched for are measured, and the collection only
// if their size times its length is beyond the limits.
func checkMembership(c *call) error {
	last := len(c.operands) - 1
	m := meter{maxNodes: MaxNodes, maxBytes: MaxText, cancel: c.cancel}
	if err := m.measureTerms(c.operands[:last]...); err != nil {
		return err
	}
	collection := c.operands[last]
	list, ok := collection.Value.(interface{ Len() int })
	if !ok {
		return nil
	}
	most := MaxNodes
	if _, isSet := collection.Value.(ast.Set); isSet || last == 2 {
		most = MaxSteps // it is compared only with values of the same hash
	} else if err := c.listedNumbers(collection); err != nil {
		return err
	}
	if saturatingMultiply(m.nodes, list.Len()) <= most && saturatingMultiply(m.bytes, list.Len()) <= MaxSteps {
		return nil
	}
	return m.measureTerms(collection)
}

// listedNumbers checks the numbers of a list, which are compared with a number that is searched for.
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

// checkKeyLookup bounds the lookup of keys in an object: the parts of a key are compared.
func checkKeyLookup(c *call) error {
	m := meter{maxNodes: MaxNodes, maxBytes: MaxText, cancel: c.cancel}
	return m.measureTerms(c.operands[1])
}

// checkKeyRemoval bounds keys in an array, in a set, or in an object whose values do not matter.
func checkKeyRemoval(c *call) error {
	keys, ok := c.operands[1].Value.(ast.Object)
	if !ok {
		return checkKeyLookup(c)
	}
	m := meter{maxNodes: MaxNodes, maxBytes: MaxText, cancel: c.cancel}
	return m.measureTerms(keys.Keys()...)
}

// checkNumbers bounds operands of calculations.
func checkNumbers(c *call) error {
	for _, t := range c.operands {
		if n, ok := t.Value.(ast.Number); ok {
			if err := CheckNumber(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNumberRange bounds the length of a range of numbers.
func checkNumberRange(c *call) error {
	if err := checkNumbers(c); err != nil {
		return err
	}
	n := [3]*big.Int{2: big.NewInt(1)}
	for i, t := range c.operands {
		v, ok := t.Value.(ast.Number)
		if !ok {
			return nil // the function reports the error
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
