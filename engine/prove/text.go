// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// understood are functions whose results are parts of their arguments, or numbers near the constants that
// they are compared with. What other functions make of facts does not vary.
var understood = map[string]bool{
	"plus": true, "minus": true, "mul": true, "div": true, "rem": true, "abs": true, "ceil": true, "floor": true, "round": true,
	"and": true, "or": true, "union": true, "intersection": true, "sort": true, "numbers.range": true, "product": true,
	"array.concat": true, "array.slice": true, "array.reverse": true, "array.flatten": true,
	"object.get": true, "object.keys": true, "object.filter": true, "object.remove": true, "object.union": true, "object.union_n": true, "object.subset": true,
	"is_array": true, "is_boolean": true, "is_null": true, "is_number": true, "is_object": true, "is_set": true, "is_string": true, "type_name": true,
	"internal.print": true, "print": true,
}

// addText notes that the value is what a function makes of facts, other than by means that are understood.
func (f *flow) addText(name string, args []*flow) {
	if understood[name] {
		return
	}
	of := map[string]bool{}
	for _, a := range args {
		for fact := range a.allFacts() {
			of[fact] = true
		}
		for text := range a.texts {
			if len(text) < maxTextBytes {
				of[text] = true
			}
		}
	}
	if len(of) > 0 {
		f.texts[fmt.Sprintf("%s of %s", name, strings.Join(slices.Sorted(maps.Keys(of)), " and "))] = true
	}
}

// maxTextBytes bounds the description of a call that is in another one.
const maxTextBytes = 200

// varyText notes that a fact varies with the case of its letters, or with space around it. It reports
// whether the function changes no more of a text than that, and the text is one fact.
func (v visitor) varyText(name string, args []*flow) bool {
	cased := name == "lower" || name == "upper"
	spaced := name == "trim_space" || slices.Contains([]string{"trim", "trim_left", "trim_right"}, name) && v.trimsSpace(args)
	if !cased && !spaced || len(args[0].texts) > 0 {
		return false
	}
	for _, p := range inOrder(args[0].allFacts()) {
		f := v.noteFact(p)
		f.cased, f.spaced = f.cased || cased, f.spaced || spaced
	}
	return true
}

// trimsSpace reports whether a function trims nothing but spaces.
func (v visitor) trimsSpace(args []*flow) bool {
	if len(args) != 2 || len(args[1].allFacts())+len(args[1].texts) > 0 {
		return false
	}
	for _, t := range args[1].consts {
		if t.Value.Compare(ast.String(" ")) != 0 {
			return false
		}
	}
	return true
}

// listUnvaried lists what does not vary of the two values of a comparison, if rules of the bundles make it.
func (v visitor) listUnvaried(a, b *flow) {
	if !v.final || !v.own[v.rule] {
		return
	}
	for _, f := range []*flow{a, b} {
		for text := range f.texts {
			v.unvaried[text] = true
		}
	}
	for _, pair := range [][2]*flow{{a, b}, {b, a}} {
		if !pair[0].capped {
			continue
		}
		for name := range pair[1].allFacts() {
			v.unvaried[fmt.Sprintf("more than %d values that %s is compared with", maxConstants, name)] = true
		}
	}
}

// textVariants returns a text in other cases, and with space around it, as far as rules change that.
func (f *fact) textVariants(text string) []any {
	var out []any
	if f.cased {
		out = append(out, strings.ToLower(text), strings.ToUpper(text))
	}
	if f.spaced {
		out = append(out, " "+text+" ")
	}
	return out
}

// hourOf returns the time of day of an hour that is a number.
func hourOf(t *ast.Term) (*ast.Term, bool) {
	n, ok := numberOf(t)
	if !ok || n < 0 || n >= 24 || n != float64(int(n)) {
		return nil, false
	}
	return ast.StringTerm(fmt.Sprintf("%02d:00", int(n))), true
}
