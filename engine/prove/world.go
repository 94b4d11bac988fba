// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"reflect"
	"slices"
)

// world is one choice of each dimension.
type world []uint8

// isActive reports whether a dimension matters in a world.
func (s *space) isActive(w world, i int) bool {
	d := s.dims[i]
	return d.parent < 0 || s.isActive(w, d.parent) && d.allowed[w[d.parent]]
}

// clearInactive sets the dimensions that do not matter to their first choice.
func (s *space) clearInactive(w world) {
	for i := range s.dims {
		if !s.isActive(w, i) {
			w[i] = 0
		}
	}
}

// countChanges counts the dimensions in which a world differs from the base.
func (w world) countChanges() int {
	n := 0
	for _, c := range w {
		if c != 0 {
			n++
		}
	}
	return n
}

// hashChoices returns a hash that is the same in each run.
func (w world) hashChoices() uint64 {
	h := fnv.New64a()
	_, _ = h.Write(w)
	return h.Sum64()
}

// anyChanges enumerates worlds with any number of changes.
const anyChanges = -1

// enumerateWorlds yields all worlds with so many changes, each once: elements of collections in one order
// only. It ends early when the context ends. The caller must copy a world to keep it.
func (s *space) enumerateWorlds(ctx context.Context, changes int) iter.Seq[world] {
	return func(yield func(world) bool) {
		w := make(world, len(s.dims))
		var descend func(i, left int) bool
		descend = func(i, left int) bool {
			if changes != anyChanges && left > len(s.dims)-i {
				return true
			}
			if i == len(s.dims) {
				return yield(w)
			}
			most := 1
			if s.isActive(w, i) && left != 0 {
				most = len(s.dims[i].choices)
			}
			if ctx.Err() != nil {
				return false
			}
			for c := range most {
				w[i] = uint8(c)
				below := left
				if c != 0 && changes != anyChanges {
					below--
				}
				if s.isSorted(w, i) && !descend(i+1, below) {
					return false
				}
			}
			w[i] = 0
			return true
		}
		descend(0, changes)
	}
}

// isSorted reports whether the element that ends with a dimension is not before the previous element.
func (s *space) isSorted(w world, i int) bool {
	d := s.dims[i]
	if !d.last || !s.isActive(w, d.first) {
		return true
	}
	before, this := w[d.twin:d.first], w[d.first:i+1]
	return slices.Compare(before, this) <= 0
}

// countWorlds counts the worlds, up to a bound. Its error says that the context ended.
func (s *space) countWorlds(ctx context.Context, most int) (int, error) {
	n := 0
	for range s.enumerateWorlds(ctx, anyChanges) {
		if n++; n > most {
			break
		}
	}
	return n, ctx.Err()
}

// buildInput returns the input of a world, as JSON values.
func (s *space) buildInput(w world) any { return s.buildNode(s.root, s.base, w) }

func (s *space) buildNode(n *node, base any, w world) any {
	out := base
	if n.dim >= 0 {
		switch c := s.dims[n.dim].choices[w[n.dim]]; c.kind {
		case absent:
			return nil
		case present:
			out = map[string]any{}
		case set:
			return c.value
		case resize:
			out = s.buildElements(n, base, c.size, w)
		case keep:
		}
	}
	if len(n.children) == 0 {
		return out
	}
	object, _ := out.(map[string]any)
	object = maps.Clone(object)
	if object == nil {
		object = map[string]any{}
	}
	changed := out != nil
	for _, c := range n.children {
		v := s.buildNode(c, object[c.key], w)
		if v == nil {
			delete(object, c.key)
			continue
		}
		object[c.key], changed = v, true
	}
	if !changed {
		return nil
	}
	return object
}

// buildElements returns a collection of so many elements.
func (s *space) buildElements(n *node, base any, size int, w world) any {
	element := firstElement(base)
	isMap := withoutPointers(n.typ).Kind() == reflect.Map
	list, object := []any{}, map[string]any{}
	for i := range size {
		v := s.buildNode(n.slots[i], element, w)
		if v == nil {
			v = zeroJSON(n.slots[i].typ)
		}
		if isMap {
			key := slotName(i)
			if d := n.slotKey[i]; d >= 0 {
				key = s.dims[d].choices[w[d]].value.(string)
			}
			object[key] = v
			continue
		}
		list = append(list, nameElement(v, n.slots[i], i))
	}
	if isMap {
		return object
	}
	return list
}

// nameElement gives an element that has a name one that no other element has.
func nameElement(v any, n *node, i int) any {
	object, ok := v.(map[string]any)
	t := withoutPointers(n.typ)
	if !ok || t.Kind() != reflect.Struct {
		return v
	}
	object = maps.Clone(object)
	for _, field := range []string{"name", "uid"} {
		if ft := fieldType(t, field); ft == nil || ft.Kind() != reflect.String {
			continue
		}
		if at := slices.IndexFunc(n.children, func(c *node) bool { return c.key == field && c.dim >= 0 }); at < 0 {
			object[field] = fmt.Sprintf("%s-%d", field, i)
		}
	}
	return object
}

// zeroJSON is the zero value of a type in JSON.
func zeroJSON(t reflect.Type) any {
	switch t = withoutPointers(t); {
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		return map[string]any{}
	case t.Kind() == reflect.Slice:
		return []any{}
	case t.Kind() == reflect.String:
		return ""
	case t.Kind() == reflect.Bool:
		return false
	}
	return 0
}
