// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Bounds of the dimensions of one base.
const (
	maxDimensions = 120
	maxKeys       = 12
)

// dimension is one thing that varies: the value of a fact, whether there is one, or how many elements there are.
type dimension struct {
	fact string
	// of is the fact as rules name it, and base its value in the base.
	of   string
	base any
	// choices are what it may be. The first one leaves the base as it is.
	choices []choice
	// parent is the dimension that must have one of some choices for this one to matter; -1 if there is none.
	parent  int
	allowed []bool // by the parent's choices
	// first is the first dimension of the element that it is in, and twin the one of the element before.
	first, twin int
	last        bool // the last dimension of its element
}

// choice is one of the values of a dimension.
type choice struct {
	kind  choiceKind
	value any
	size  int
}

type choiceKind int

const (
	keep choiceKind = iota
	absent
	present
	set
	resize
)

// node is a part of the input below which something varies.
type node struct {
	key  string
	typ  reflect.Type // may be a pointer
	dim  int          // -1 if the node itself does not vary
	fact *fact

	children []*node
	// element is the tree of any element, before slots are made of it, and keys what keys of a map may be.
	element *node
	keys    *fact
	slots   []*node
	slotKey []int // the dimension of the key of each slot, for maps
}

// space is all worlds of one base.
type space struct {
	point string
	base  any
	root  *node
	dims  []*dimension
	// leftOut are facts that have no dimension.
	leftOut map[string]bool
}

// newSpace makes the dimensions of a base: those of the facts that vary, with collections of up to so
// many elements.
func newSpace(point string, in reflect.Type, base any, facts map[string]*fact, elements int) *space {
	s := &space{point: point, base: base, root: &node{typ: in, dim: -1}, leftOut: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if f := facts[name]; f.isVaried(in) {
			s.root.insertFact(f, f.path.steps)
		}
	}
	s.addDimensions(s.root, base, true, -1, nil, elements, "input")
	return s
}

// insertFact adds a fact to the tree.
func (n *node) insertFact(f *fact, steps []step) {
	if len(steps) == 0 {
		if f.path.key {
			n.keys = f
			n.needElement()
		} else {
			n.fact = f
		}
		return
	}
	if steps[0].each {
		n.needElement()
		n.element.insertFact(f, steps[1:])
		return
	}
	i := slices.IndexFunc(n.children, func(c *node) bool { return c.key == steps[0].name })
	if i < 0 {
		n.children = append(n.children, &node{key: steps[0].name, typ: stepType(n.typ, steps[0]), dim: -1})
		i = len(n.children) - 1
	}
	n.children[i].insertFact(f, steps[1:])
}

func (n *node) needElement() {
	if n.element == nil {
		n.element = &node{typ: stepType(n.typ, step{each: true}), dim: -1}
	}
}

// cloneTree copies a tree without its dimensions.
func (n *node) cloneTree() *node {
	out := &node{key: n.key, typ: n.typ, dim: -1, fact: n.fact, keys: n.keys}
	for _, c := range n.children {
		out.children = append(out.children, c.cloneTree())
	}
	if n.element != nil {
		out.element = n.element.cloneTree()
	}
	return out
}

func (s *space) addDimension(d *dimension) int {
	if len(s.dims) >= maxDimensions {
		s.leftOut[d.fact] = true
		return -1
	}
	d.first, d.twin = -1, -1
	s.dims = append(s.dims, d)
	return len(s.dims) - 1
}

// addDimensions makes the dimensions of a node. Optional is false for a value that is always there.
func (s *space) addDimensions(n *node, base any, required bool, parent int, allowed []bool, elements int, name string) {
	t := withoutPointers(n.typ)
	n.dim = -1
	of := ""
	if n.fact != nil {
		of = n.fact.path.String()
	}
	switch {
	case n.element != nil:
		s.addCollection(n, base, parent, allowed, elements, name)
		parent, allowed = -1, nil // named parts of a map may be there in any case
	case !isStructured(t):
		s.addLeaf(n, base, required, parent, allowed, name)
		return
	case n.typ.Kind() == reflect.Pointer || !required:
		other := choice{kind: absent}
		if base == nil {
			other = choice{kind: present}
		}
		n.dim = s.addDimension(&dimension{fact: name, of: of, base: base, choices: []choice{{kind: keep}, other}, parent: parent, allowed: allowed})
		if n.dim < 0 {
			return
		}
		parent, allowed = n.dim, []bool{base != nil, base == nil}
	case n.fact != nil && len(n.children) == 0:
		s.leftOut[of] = true // a function reads the whole of it, and nothing says what its parts are compared with
	}
	for _, c := range n.children {
		s.addDimensions(c, childOf(base, c.key), t.Kind() == reflect.Struct, parent, allowed, elements, joinName(name, c.key))
	}
}

func joinName(name, key string) string {
	return factPath{steps: []step{{name: key}}}.describeBelow(name)
}

func childOf(base any, key string) any {
	m, _ := base.(map[string]any)
	return m[key]
}

// addLeaf makes the dimension of a value without parts.
func (s *space) addLeaf(n *node, base any, required bool, parent int, allowed []bool, name string) {
	if n.fact == nil {
		return
	}
	d := &dimension{fact: name, of: n.fact.path.String(), base: base, choices: []choice{{kind: keep}}, parent: parent, allowed: allowed}
	if (!required || n.typ.Kind() == reflect.Pointer) && base != nil {
		d.choices = append(d.choices, choice{kind: absent})
	}
	values, more := factValues(n.fact, withoutPointers(n.typ))
	if more {
		s.leftOut["more values of "+d.of] = true
	}
	for _, v := range values {
		if !reflect.DeepEqual(v, base) && !(required && base == nil && isZeroJSON(v)) {
			d.choices = append(d.choices, choice{kind: set, value: v})
		}
	}
	if len(d.choices) > 1 {
		n.dim = s.addDimension(d)
	}
}

func isZeroJSON(v any) bool {
	return v == false || v == "" || v == json.Number("0")
}

// addCollection makes the dimensions of a list or a map: its size, and those of each element.
func (s *space) addCollection(n *node, base any, parent int, allowed []bool, elements int, name string) {
	d := &dimension{fact: name, choices: []choice{{kind: keep}}, parent: parent, allowed: allowed}
	empty := sizeOf(base) == 0
	if !empty {
		d.choices = append(d.choices, choice{kind: resize, size: 0})
	}
	for size := 1; size <= elements; size++ {
		d.choices = append(d.choices, choice{kind: resize, size: size})
	}
	if n.dim = s.addDimension(d); n.dim < 0 {
		return
	}
	isMap := withoutPointers(n.typ).Kind() == reflect.Map
	element := firstElement(base)
	last := -1
	for i := range elements {
		slot := n.element.cloneTree()
		there := make([]bool, len(d.choices))
		for c, ch := range d.choices {
			there[c] = ch.kind == resize && ch.size > i
		}
		first := len(s.dims)
		below := fmt.Sprintf("%s[%d]", name, i)
		key := -1
		if isMap {
			keys := &dimension{fact: name + " key " + fmt.Sprint(i), choices: []choice{{kind: keep, value: slotName(i)}}, parent: n.dim, allowed: there}
			if n.keys != nil {
				keys.of = n.keys.path.String()
				values, more := factValues(n.keys, reflect.TypeFor[string]())
				if more || len(values) > maxKeys {
					s.leftOut["more values of "+keys.of] = true
				}
				for _, v := range values[:min(len(values), maxKeys)] {
					keys.choices = append(keys.choices, choice{kind: set, value: v})
				}
			}
			key = s.addDimension(keys)
		}
		s.addDimensions(slot, element, true, n.dim, there, elements, below)
		n.slots, n.slotKey = append(n.slots, slot), append(n.slotKey, key)
		if end := len(s.dims); end > first {
			if last >= 0 && end-first == first-last {
				s.dims[end-1].first, s.dims[end-1].twin, s.dims[end-1].last = first, last, true
			}
			last = first
		}
	}
}

func slotName(i int) string { return string(rune('a' + i)) }

func sizeOf(v any) int {
	switch x := v.(type) {
	case []any:
		return len(x)
	case map[string]any:
		return len(x)
	}
	return 0
}

// firstElement returns the element of a collection that new elements are copies of.
func firstElement(v any) any {
	switch x := v.(type) {
	case []any:
		if len(x) > 0 {
			return x[0]
		}
	case map[string]any:
		if keys := slices.Sorted(maps.Keys(x)); len(keys) > 0 {
			return x[keys[0]]
		}
	}
	return nil
}

func (p factPath) describeBelow(name string) string {
	return name + strings.TrimPrefix(p.String(), "input")
}
