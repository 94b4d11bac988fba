// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxCallDepth bounds how many references of a rule are followed to make it true.
const maxCallDepth = 5

// drawer draws worlds of a space.
type drawer struct {
	*space
	rand *rand.Rand
	// rules are those of the bundles, with their conditions.
	rules []*ast.Rule
	hints map[*ast.Rule]*ruleHints
	// mixed draws other worlds between those with one change, of which there may be too many to try.
	mixed bool
	// single is the next world with one change, and pair the next with two.
	single, pair [2]int
	turn         int
	// corpus are worlds with answers that no world before had.
	corpus []world
}

// drawWorld returns the next world: first the base and each single change, then in turn worlds that are
// made to fit a rule, changes of worlds with answers of their own, pairs of changes, and any.
func (d *drawer) drawWorld() world {
	w := make(world, len(d.dims))
	if d.turn == 0 || len(d.dims) == 0 {
		d.turn++
		return w
	}
	if d.single[0] < len(d.dims) && (!d.mixed || d.turn%2 == 0) {
		if d.single[1]++; d.single[1] >= len(d.dims[d.single[0]].choices) {
			d.single = [2]int{d.single[0] + 1, 0}
			return d.drawWorld()
		}
		d.setChoice(w, d.single[0], uint8(d.single[1]))
		if d.mixed {
			d.turn++
		}
		return w
	}
	d.turn++
	switch d.turn % 5 {
	case 0, 1:
		if len(d.rules) > 0 {
			d.fitRule(w, d.rules[d.rand.IntN(len(d.rules))], false, maxCallDepth)
			d.changeSome(w, d.rand.IntN(3))
			break
		}
		fallthrough
	case 2:
		if len(d.corpus) > 0 {
			copy(w, d.corpus[d.rand.IntN(len(d.corpus))])
		}
		d.changeSome(w, 1+d.rand.IntN(3))
	case 3:
		d.nextPair(w)
	default:
		for i := range d.dims {
			w[i] = d.anyChoice(i)
		}
	}
	d.clearInactive(w)
	return w
}

// nextPair changes the next two dimensions.
func (d *drawer) nextPair(w world) {
	if d.pair[1]++; d.pair[1] >= len(d.dims) {
		d.pair[0]++
		d.pair[1] = d.pair[0] + 1
		if d.pair[1] >= len(d.dims) {
			d.pair = [2]int{0, min(1, len(d.dims)-1)}
		}
	}
	for _, i := range d.pair {
		d.setChoice(w, i, d.anyChoice(i))
	}
}

func (d *drawer) anyChoice(i int) uint8 { return uint8(d.rand.IntN(len(d.dims[i].choices))) }

func (d *drawer) changeSome(w world, n int) {
	for range n {
		i := d.rand.IntN(len(d.dims))
		d.setChoice(w, i, d.anyChoice(i))
	}
}

// setChoice sets a dimension, and those above it so that it matters.
func (d *drawer) setChoice(w world, i int, c uint8) {
	w[i] = c
	for of := d.dims[i]; of.parent >= 0; of = d.dims[of.parent] {
		if of.allowed[w[of.parent]] {
			continue
		}
		if at := slices.Index(of.allowed, true); at >= 0 {
			w[of.parent] = uint8(at)
		}
	}
}

// fitRule makes the conditions of a rule true that are about one fact each, or one of them false.
func (d *drawer) fitRule(w world, r *ast.Rule, negated bool, depth int) {
	h := d.hints[r]
	if h == nil || depth == 0 {
		return
	}
	if negated {
		if len(h.wants) > 0 {
			d.fitWant(w, h.wants[d.rand.IntN(len(h.wants))], true)
		}
		return
	}
	for _, x := range h.wants {
		d.fitWant(w, x, false)
	}
	for _, c := range h.calls {
		switch {
		case len(c.rules) == 0:
		case c.negated:
			for _, callee := range c.rules {
				d.fitRule(w, callee, true, depth-1)
			}
		default:
			d.fitRule(w, c.rules[d.rand.IntN(len(c.rules))], false, depth-1)
		}
	}
}

// fitWant chooses a value for which a condition is true, or false.
func (d *drawer) fitWant(w world, x want, negated bool) {
	negated = negated != x.negated
	all := d.rand.IntN(2) == 0
	for i, dim := range d.dims {
		if dim.of != x.fact {
			continue
		}
		var fit []uint8
		for c, ch := range dim.choices {
			if x.isTrue(ch.valueIn(dim)) != negated {
				fit = append(fit, uint8(c))
			}
		}
		if len(fit) > 0 {
			d.setChoice(w, i, fit[d.rand.IntN(len(fit))])
		}
		if !all {
			return
		}
	}
}

// valueIn returns the value that a choice gives a dimension; nil if there is none.
func (c choice) valueIn(d *dimension) any {
	switch c.kind {
	case absent:
		return nil
	case present:
		return map[string]any{}
	case set:
		return c.value
	case resize:
		return c.size
	}
	if c.value != nil {
		return c.value
	}
	return d.base
}

// isTrue reports whether the condition is true of a value.
func (x want) isTrue(v any) bool {
	if x.op == "true" {
		return v != nil && v != false
	}
	if v == nil {
		return false
	}
	value, err := ast.InterfaceToValue(v)
	if err != nil {
		return false
	}
	text, _ := value.(ast.String)
	other, _ := x.value.Value.(ast.String)
	order := value.Compare(x.value.Value)
	switch x.op {
	case "==":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	case "startswith":
		return strings.HasPrefix(string(text), string(other))
	case "endswith":
		return strings.HasSuffix(string(text), string(other))
	case "contains":
		return strings.Contains(string(text), string(other))
	case "matches":
		re, err := regexp.Compile(string(other))
		return err == nil && re.MatchString(string(text))
	}
	return false
}
