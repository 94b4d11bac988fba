// SPDX-License-Identifier: Apache-2.0

package implication

import (
	"maps"
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// presence says whether a term has a value.
type presence int

const (
	maybe presence = iota
	there
	absent
)

// knowledge is what is known of a term.
type knowledge struct {
	term     *ast.Term
	presence presence
	// values are those that it may have if it has one.
	values span
	shape  shape
	// parent is the term that it is a part of; empty if there is none.
	parent string
}

// order is a set of ways in which two values may compare.
type order uint8

const (
	less order = 1 << iota
	same
	more
)

// relation is how the values of two terms compare.
type relation struct {
	a, b string
	as   order
	// certain is true if both terms have a value; otherwise it is true only if they have.
	certain bool
}

// store has what is known while some conditions are true and others are not. It may know less than
// follows from them, and never more.
type store struct {
	in      reflect.Type
	known   map[string]*knowledge
	orders  []relation
	opaque  map[string]bool
	domains map[ast.Var]domain
	// steps counts the conditions that were read.
	steps int
	// broken is true if a condition is both true and not.
	broken bool
	// why is the reason of a contradiction.
	why reason
}

// reason says of which term a contradiction is.
type reason struct {
	term *ast.Term
	// missing is true if there is no such term in any input.
	missing bool
	shape   shape
}

func newStore(in reflect.Type) *store {
	return &store{in: in, known: map[string]*knowledge{}, opaque: map[string]bool{}, domains: map[ast.Var]domain{}}
}

// knowTerm returns what is known of a term.
func (s *store) knowTerm(t *ast.Term) *knowledge {
	key := t.String()
	k := s.known[key]
	if k == nil {
		k = &knowledge{term: t, values: valuesOfTerm(t), shape: unknownShape()}
		s.known[key] = k
		if of, ok := countedTerm(t); ok {
			s.knowTerm(of)
		}
		if ref, ok := t.Value.(ast.Ref); ok && len(ref) > 1 && isFact(ref) {
			parent := ast.NewTerm(ref[:len(ref)-1])
			if len(ref) == 2 {
				parent = ref[0]
			}
			k.parent = parent.String()
			s.knowTerm(parent)
		}
	}
	return k
}

// countedTerm returns the argument of a call of count.
func countedTerm(t *ast.Term) (*ast.Term, bool) {
	call, ok := t.Value.(ast.Call)
	if !ok || len(call) != 2 || call[0].String() != ast.Count.Name || isConstant(call[1]) || !isSubject(call[1]) {
		return nil, false
	}
	return call[1], true
}

// isFact reports whether a reference is to a part of the input or of a variable, and not to rules.
func isFact(ref ast.Ref) bool {
	head, ok := ref[0].Value.(ast.Var)
	return ok && !head.Equal(ast.DefaultRootDocument.Value)
}

func (s *store) markThere(t *ast.Term) {
	if isConstant(t) {
		return
	}
	k := s.knowTerm(t)
	if k.presence == absent {
		s.broken, s.why = true, reason{term: t}
	}
	k.presence = there
}

// setOpaque notes whether a condition is true that is known by its text alone.
func (s *store) setOpaque(text string, is bool) {
	if was, ok := s.opaque[text]; ok && was != is {
		s.broken = true
	}
	s.opaque[text] = is
}

// maxSteps and maxOrders bound what a store reads. Beyond them it knows less.
const (
	maxSteps  = 2000
	maxOrders = 200
)

// maxRounds bounds how often what is known is combined.
const maxRounds = 12

// isContradiction reports whether what is known cannot be.
func (s *store) isContradiction() bool {
	if s.broken {
		return true
	}
	s.readShapes()
	for range maxRounds {
		before := s.countKnown()
		for _, key := range slices.Sorted(maps.Keys(s.known)) {
			if s.combineParts(s.known[key]) {
				return true
			}
		}
		for i := range s.orders {
			if s.combineOrder(&s.orders[i]) {
				return true
			}
		}
		if s.countKnown() == before {
			break
		}
	}
	return false
}

// countKnown grows with what is known.
func (s *store) countKnown() int {
	n := 0
	for _, k := range s.known {
		if k.presence != maybe {
			n++
		}
		n += len(k.values.never) + 8 - countKinds(k.values.kinds)
		if v, ok := k.values.singleValue(); ok && v != nil {
			n++
		}
		if k.values.low != nil {
			n++
		}
		if k.values.high != nil {
			n++
		}
	}
	return n
}

func countKinds(k kind) int {
	n := 0
	for _, one := range kindOrder() {
		if k&one != 0 {
			n++
		}
	}
	return n
}

func (s *store) readShapes() {
	for _, key := range slices.Sorted(maps.Keys(s.known)) {
		k := s.known[key]
		k.shape = shapeOfTerm(s.in, k.term, s.domains, 0)
		k.values.intersectSpan(k.shape.values)
	}
}

// combineParts combines what is known of a term and of what it is a part of. It reports a contradiction.
func (s *store) combineParts(k *knowledge) bool {
	needed := k.shape.always
	missing := k.shape.never || k.values.isEmpty()
	if of, ok := countedTerm(k.term); ok {
		c := s.knowTerm(of)
		needed = c.presence == there && c.values.kinds&^(composite|text) == 0
	}
	if p := s.known[k.parent]; p != nil && k.parent != "" {
		missing = missing || p.presence == absent || p.values.kinds&composite == 0
		if k.presence == there {
			p.values.kinds &= composite
			if p.presence == maybe {
				p.presence = there
			}
		}
		needed = needed || p.presence == there && k.shape.within && p.values.kinds == object
	}
	if needed && k.presence == maybe {
		k.presence = there
	}
	switch {
	case missing && k.presence == maybe:
		k.presence = absent
	case missing && k.presence == there, needed && k.presence == absent:
		s.why = reason{term: k.term, missing: k.shape.never, shape: k.shape}
		return true
	}
	return false
}

// combineOrder combines what is known of two terms that are compared. It reports a contradiction.
func (s *store) combineOrder(r *relation) bool {
	a, b := s.known[r.a], s.known[r.b]
	if !r.certain {
		if a.presence != there || b.presence != there {
			return false
		}
		r.certain = true
	}
	as := r.as
	for _, o := range s.orders {
		if !o.certain {
			continue
		}
		switch {
		case o.a == r.a && o.b == r.b:
			as &= o.as
		case o.a == r.b && o.b == r.a:
			as &= exchangeSides(o.as)
		}
	}
	if as == 0 {
		s.why = reason{term: a.term}
		return true
	}
	if as&more == 0 { // a <= b
		a.values.lowerHigh(openLimit(b.values.upperLimit(), as&same == 0))
		b.values.raiseLow(openLimit(a.values.lowerLimit(), as&same == 0))
	}
	if as&less == 0 { // a >= b
		b.values.lowerHigh(openLimit(a.values.upperLimit(), as&same == 0))
		a.values.raiseLow(openLimit(b.values.lowerLimit(), as&same == 0))
	}
	if as == same {
		a.values.intersectSpan(b.values)
		b.values.intersectSpan(a.values)
	}
	if as&same == 0 {
		if v, ok := b.values.singleValue(); ok {
			a.values.intersectSpan(comparedSpan("!=", v, true))
		}
		if v, ok := a.values.singleValue(); ok {
			b.values.intersectSpan(comparedSpan("!=", v, true))
		}
	}
	return false
}

// upperLimit returns the upper end of a span; nil if none is known.
func (s *span) upperLimit() *limit {
	if v, ok := s.singleValue(); ok {
		return &limit{value: v}
	}
	return s.high
}

func (s *span) lowerLimit() *limit {
	if v, ok := s.singleValue(); ok {
		return &limit{value: v}
	}
	return s.low
}

func openLimit(l *limit, open bool) *limit {
	if l == nil || !open {
		return l
	}
	return &limit{l.value, true}
}

func exchangeSides(o order) order {
	out := o & same
	if o&less != 0 {
		out |= more
	}
	if o&more != 0 {
		out |= less
	}
	return out
}

// orderOf returns how two values compare if a comparison of them is true, or if it is false.
func orderOf(op string, isTrue bool) order {
	out := map[string]order{"==": same, "!=": less | more, "<": less, "<=": less | same, ">": more, ">=": more | same}[op]
	if !isTrue {
		out = (less | same | more) &^ out
	}
	return out
}
