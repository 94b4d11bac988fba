// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/engine/schema"
)

// findImpossibleRules reports rules that can never be true because their conditions need
// facts that no point has together. A package of a domain is evaluated at all points of the domain, so
// a rule is possible if it is possible at one of them. Conditions that cannot be analyzed count as
// possible everywhere.
func findImpossibleRules(c *ast.Compiler, b *bundle.Bundle, domain string) module.Problems {
	if b.Kind == bundle.Builtin {
		return nil
	}
	p := &possibility{compiler: c, of: map[*ast.Rule]pointSet{}}
	for _, point := range catalog.All() {
		if point.Name.Domain() == domain {
			s, err := schema.ReflectType(point.In)
			if err != nil {
				return nil // the stage has reported it
			}
			p.points, p.inputs = append(p.points, point.Name), append(p.inputs, facts{s})
		}
	}
	var out module.Problems
	for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
		m := c.Modules[b.Name+"/"+file]
		if m == nil || !strings.HasPrefix(module.PackagePath(m), "extend."+domain+".") {
			continue
		}
		for _, r := range m.Rules {
			if !isExtension(domain, r) || p.pointsForRule(r) != 0 {
				continue
			}
			loc, why := p.explainImpossible(r)
			out = append(out, module.ProblemAt(loc, "%s can never be true: %s", r.Head.Ref()[0], why))
		}
	}
	return out
}

func isExtension(domain string, r *ast.Rule) bool {
	return slices.ContainsFunc(bundle.AllExtensions(), func(x bundle.Extension) bool {
		return x.Domain == domain && x.Rule == r.Head.Ref()[0].String()
	})
}

// pointSet has a bit for each point of a domain. No domain has more than 64.
type pointSet uint64

// possibility computes at which points rules can be true.
type possibility struct {
	compiler *ast.Compiler
	points   []decision.Name
	inputs   []facts
	of       map[*ast.Rule]pointSet
}

func (p *possibility) allPoints() pointSet { return 1<<len(p.points) - 1 }

// condition is a reference that must be defined for a rule to be true.
type condition struct {
	ref      ast.Ref
	location *ast.Location
	at       pointSet
}

// pointsForRule returns the points at which one definition of a rule, or one of its else branches, can be true.
func (p *possibility) pointsForRule(r *ast.Rule) pointSet {
	if at, ok := p.of[r]; ok {
		return at
	}
	p.of[r] = p.allPoints() // for recursion, which the compiler has excluded
	at := p.allPoints()
	if !r.Default {
		for _, c := range p.requiredConditions(r.Body) {
			at &= c.at
		}
		if r.Else != nil {
			at |= p.pointsForRule(r.Else)
		}
	}
	p.of[r] = at
	return at
}

// requiredConditions returns the references in a body that must be defined for it to be true.
func (p *possibility) requiredConditions(body ast.Body) (out []condition) {
	for _, e := range body {
		// An expression with another input is about that input, and a negation is true if something is
		// undefined.
		if e.Negated || len(e.With) > 0 {
			continue
		}
		switch e.Terms.(type) {
		case *ast.Term, []*ast.Term:
		default:
			continue // such as not, every and or, in which a part may be undefined
		}
		ast.NewGenericVisitor(func(x any) bool {
			switch x := x.(type) {
			case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension, *ast.TemplateString, ast.Body, *ast.Expr:
				return x != any(e) // it has a value even if something in it is undefined
			case *ast.Term:
				if ref, ok := x.Value.(ast.Ref); ok {
					loc := x.Location
					if loc == nil {
						loc = e.Location
					}
					if at := p.pointsForReference(ref); at != p.allPoints() {
						out = append(out, condition{ref, loc, at})
					}
				}
			}
			return false
		}).Walk(e)
	}
	return out
}

// pointsForReference returns the points at which a reference can be defined.
func (p *possibility) pointsForReference(ref ast.Ref) pointSet {
	if ref.HasPrefix(ast.InputRootRef) {
		var at pointSet
		for i, in := range p.inputs {
			if in.mayHavePath(ref[1:]) {
				at |= 1 << i
			}
		}
		return at
	}
	if !ref.HasPrefix(ast.DefaultRootRef) {
		return p.allPoints()
	}
	rules := p.compiler.GetRulesExact(ref.ConstantPrefix())
	if len(rules) == 0 {
		return p.allPoints() // data, or a package with rules in it
	}
	var at pointSet
	for _, r := range rules {
		if r.Default || r.Head.RuleKind() == ast.MultiValue || len(r.Head.Ref()) > len(r.Head.Ref().GroundPrefix()) {
			return p.allPoints() // the set is empty if the rule is not true
		}
		at |= p.pointsForRule(r)
	}
	return at
}

// explainImpossible names two conditions that no point meets, and the location of the second.
func (p *possibility) explainImpossible(r *ast.Rule) (*ast.Location, string) {
	conditions := p.requiredConditions(r.Body)
	for i, b := range conditions {
		if b.at == 0 {
			if of := p.compiler.GetRulesExact(b.ref.ConstantPrefix()); len(of) > 0 {
				_, why := p.explainImpossible(of[0])
				return b.location, fmt.Sprintf("it needs %s, and %s", b.ref, why)
			}
			return b.location, fmt.Sprintf("it needs %s, which no point has", b.ref)
		}
		for _, a := range conditions[:i] {
			if a.at&b.at == 0 {
				return b.location, fmt.Sprintf("it needs %s, which %s has, and %s, which %s has; no point has both", a.ref, p.pointNames(a.at), b.ref, p.pointNames(b.at))
			}
		}
	}
	// No two conditions exclude each other, but all together do.
	all := p.allPoints()
	for _, b := range conditions {
		if all&b.at == 0 {
			return b.location, fmt.Sprintf("what comes before %s can be true at %s only, and %s has that; no point has both", b.ref, p.pointNames(all), p.pointNames(b.at))
		}
		all &= b.at
	}
	return r.Location, "its conditions need facts of different points"
}

func (p *possibility) pointNames(at pointSet) string {
	var out []string
	for i, name := range p.points {
		if at&(1<<i) != 0 {
			out = append(out, string(name))
		}
	}
	return strings.Join(out, " or ")
}
