// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/implication"
)

// maxClauses bounds the holds and denials that are compared with each other.
const maxClauses = 200

// clause is a hold or a denial.
type clause struct {
	module *ast.Module
	rule   *ast.Rule
	name   string
	body   *implication.Body
	fields map[string]*ast.Term
	// covered is true if another one covers it.
	covered bool
}

// fieldsOf returns the fields of an object; false if some are not known.
func fieldsOf(key *ast.Term) (map[string]*ast.Term, bool) {
	if key == nil {
		return nil, false
	}
	object, ok := key.Value.(ast.Object)
	if !ok {
		return nil, false
	}
	out := map[string]*ast.Term{}
	object.Foreach(func(k, v *ast.Term) {
		name, text := k.Value.(ast.String)
		ok = ok && text
		out[string(name)] = v
	})
	return out, ok
}

// limitingFields are those that limit what a hold or a denial reaches, and explainingFields those that say why it is there.
func limitingFields() []string {
	return []string{"where", "pod", "namespace", "target", "node", "container"}
}
func explainingFields() []string { return []string{"rule", "reason", "message"} }

// reachesAsMuch reports whether a hold reaches all that another one does, and does the same with it.
func reachesAsMuch(by, of map[string]*ast.Term) bool {
	for _, fields := range []map[string]*ast.Term{by, of} {
		for name := range fields {
			switch {
			case slices.Contains(explainingFields(), name):
			case slices.Contains(limitingFields(), name) && by[name] == nil:
			case name == "until" && of[name] == nil:
			case by[name] == nil || of[name] == nil || !by[name].Equal(of[name]):
				return false
			}
		}
	}
	return by["reason"] != nil && by["message"] != nil
}

// compareClauses reports the holds and denials that others of the bundle cover.
func (c *checker) compareClauses() {
	if len(c.clauses) > maxClauses {
		return
	}
	for i := len(c.clauses) - 1; i >= 0; i-- {
		of := &c.clauses[i]
		for j := range c.clauses {
			by := &c.clauses[j]
			if i == j || by.covered || by.name != of.name || domainOf(by.module) != domainOf(of.module) {
				continue
			}
			accept := func(key *ast.Term) bool {
				fields, ok := fieldsOf(key)
				return ok && reachesAsMuch(fields, of.fields)
			}
			if !of.body.IsCovered(by.body, c.inputsOf(of.module), accept) {
				continue
			}
			of.covered = true
			c.reportCovered(of, by)
			break
		}
	}
}

func (c *checker) reportCovered(of, by *clause) {
	what := "hold"
	if of.name == "deny" {
		what = "denial"
	}
	place := by.rule.Location
	if same := of.fields["reason"]; same != nil && same.Equal(by.fields["reason"]) {
		if of.body.IsCovered(by.body, c.inputsOf(of.module), func(*ast.Term) bool { return true }) && by.body.IsCovered(of.body, c.inputsOf(of.module), func(*ast.Term) bool { return true }) {
			c.reportFinding(Covered, of.rule.Location, "this %s is there twice: the one at %s:%d has the same reason and is true of the same inputs", what, place.File, place.Row)
			return
		}
	}
	c.reportFinding(Covered, of.rule.Location, "this %s adds nothing: wherever it is true the one at %s:%d is, and reaches as much", what, place.File, place.Row)
}
