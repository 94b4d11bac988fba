// SPDX-License-Identifier: Apache-2.0

package implication

import (
	"math"
	"slices"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

// kind is a set of kinds of values.
type kind uint8

const (
	null kind = 1 << iota
	boolean
	number
	text
	array
	object
	set

	anyKind   kind = null | boolean | number | text | array | object | set
	composite kind = array | object | set
)

// kindOrder lists the kinds in the order in which Rego compares values of different kinds.
func kindOrder() []kind { return []kind{null, boolean, number, text, array, object, set} }

// kindOf returns the kind of a constant; 0 if it is none.
func kindOf(v ast.Value) kind {
	switch v.(type) {
	case ast.Null:
		return null
	case ast.Boolean:
		return boolean
	case ast.Number:
		return number
	case ast.String:
		return text
	case *ast.Array:
		return array
	case ast.Object:
		return object
	case ast.Set:
		return set
	}
	return 0
}

// limit is the end of a span.
type limit struct {
	value ast.Value
	// open is true if the value itself is beyond the end.
	open bool
}

// span is a set of values in the order in which Rego compares them. It may have values that are not
// possible, and lacks none that is.
type span struct {
	kinds     kind
	low, high *limit
	// only are the only values, if it is not nil, and never are values that are not in it.
	only, never []ast.Value
	// whole is true if its numbers are integers.
	whole bool
}

func anyValue() span { return span{kinds: anyKind} }

// maxValues bounds how many values of a span are compared one by one.
const maxValues = 64

// intersectSpan leaves the values that both spans have.
func (s *span) intersectSpan(o span) {
	s.kinds &= o.kinds
	s.whole = s.whole || o.whole
	s.raiseLow(o.low)
	s.lowerHigh(o.high)
	if o.only != nil && s.only == nil {
		s.only = o.only
	} else if o.only != nil {
		s.only = slices.DeleteFunc(slices.Clone(s.only), func(v ast.Value) bool { return !hasValue(o.only, v) })
	}
	for _, v := range o.never {
		if !hasValue(s.never, v) {
			s.never = append(s.never[:len(s.never):len(s.never)], v)
		}
	}
}

func (s *span) raiseLow(l *limit) {
	if l == nil {
		return
	}
	if s.low == nil {
		s.low = l
		return
	}
	if c := l.value.Compare(s.low.value); c > 0 || c == 0 && l.open {
		s.low = l
	}
}

func (s *span) lowerHigh(l *limit) {
	if l == nil {
		return
	}
	if s.high == nil {
		s.high = l
		return
	}
	if c := l.value.Compare(s.high.value); c < 0 || c == 0 && l.open {
		s.high = l
	}
}

func hasValue(all []ast.Value, v ast.Value) bool {
	return slices.ContainsFunc(all, func(o ast.Value) bool { return o.Compare(v) == 0 })
}

// allowsValue reports whether a value is in the span.
func (s *span) allowsValue(v ast.Value) bool {
	if s.kinds&kindOf(v) == 0 || s.only != nil && !hasValue(s.only, v) || hasValue(s.never, v) {
		return false
	}
	if n, ok := v.(ast.Number); ok && s.whole {
		if f, ok := exactNumber(n); ok && f != math.Trunc(f) {
			return false
		}
	}
	if s.low != nil {
		if c := v.Compare(s.low.value); c < 0 || c == 0 && s.low.open {
			return false
		}
	}
	if s.high != nil {
		if c := v.Compare(s.high.value); c > 0 || c == 0 && s.high.open {
			return false
		}
	}
	return true
}

// isEmpty reports whether the span certainly has no value.
func (s *span) isEmpty() bool {
	if s.only != nil {
		return !slices.ContainsFunc(s.only, s.allowsValue)
	}
	return !slices.ContainsFunc(kindOrder(), s.mayHaveKind)
}

// singleValue returns the value of a span that has no other one.
func (s *span) singleValue() (ast.Value, bool) {
	if s.only == nil {
		return nil, false
	}
	var left []ast.Value
	for _, v := range s.only {
		if s.allowsValue(v) && !hasValue(left, v) {
			left = append(left, v)
		}
	}
	if len(left) != 1 {
		return nil, false
	}
	return left[0], true
}

// mayHaveKind reports whether the span may have a value of a kind.
func (s *span) mayHaveKind(k kind) bool {
	if s.kinds&k == 0 {
		return false
	}
	low, high := s.low, s.high
	order := slices.Index(kindOrder(), k)
	if low != nil {
		switch at := slices.Index(kindOrder(), kindOf(low.value)); {
		case at > order:
			return false
		case at < order:
			low = nil
		}
	}
	if high != nil {
		switch at := slices.Index(kindOrder(), kindOf(high.value)); {
		case at < order:
			return false
		case at > order:
			high = nil
		}
	}
	switch k {
	case null:
		return s.allowsValue(ast.NullValue)
	case boolean:
		return s.allowsValue(ast.Boolean(false)) || s.allowsValue(ast.Boolean(true))
	case number:
		return s.mayHaveNumber(low, high)
	case text:
		if high != nil && low == nil {
			low = &limit{value: ast.String("")}
		}
		return s.mayHaveBetween(low, high)
	}
	return true // nothing is known of which lists there are
}

// mayHaveBetween reports whether there may be a value between two limits of its kind.
func (s *span) mayHaveBetween(low, high *limit) bool {
	if low == nil || high == nil {
		return true
	}
	if c := low.value.Compare(high.value); c != 0 {
		return c < 0
	}
	return s.allowsValue(low.value)
}

func (s *span) mayHaveNumber(low, high *limit) bool {
	if !s.mayHaveBetween(low, high) {
		return false
	}
	if !s.whole || low == nil || high == nil {
		return true
	}
	first, ok := exactNumber(low.value)
	if !ok {
		return true
	}
	last, ok := exactNumber(high.value)
	if !ok {
		return true
	}
	if up := math.Ceil(first); up == first && low.open {
		first++
	} else {
		first = up
	}
	if down := math.Floor(last); down == last && high.open {
		last--
	} else {
		last = down
	}
	if last-first > maxValues {
		return true
	}
	for n := first; n <= last; n++ {
		if s.allowsValue(ast.Number(strconv.FormatFloat(n, 'f', -1, 64))) {
			return true
		}
	}
	return false
}

// exactNumber returns a number that is small enough to be exact as a float.
func exactNumber(v ast.Value) (float64, bool) {
	n, ok := v.(ast.Number)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(n), 64)
	return f, err == nil && math.Abs(f) < 1<<52
}

// comparedSpan is the span of values for which a comparison with a constant is true, or the one for which
// it is false.
func comparedSpan(op string, c ast.Value, isTrue bool) span {
	out := anyValue()
	if !isTrue {
		op = oppositeComparisons()[op]
	}
	switch op {
	case "==":
		out.only = []ast.Value{c}
	case "!=":
		out.never = []ast.Value{c}
	case "<":
		out.high = &limit{c, true}
	case "<=":
		out.high = &limit{c, false}
	case ">":
		out.low = &limit{c, true}
	case ">=":
		out.low = &limit{c, false}
	}
	return out
}

// oppositeComparisons are the comparisons that are true where another one is false.
func oppositeComparisons() map[string]string {
	return map[string]string{"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
}

// turnedComparisons are the comparisons with their sides exchanged.
func turnedComparisons() map[string]string {
	return map[string]string{"==": "==", "!=": "!=", "<": ">", ">=": "<=", ">": "<", "<=": ">="}
}
