// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

// AnswerUndecided answers in place of policies that did not decide. If the point says so, other
// policies take part: the exemptions of the platform, which must not be lost when another rule fails,
// and the built-in policies alone, if a pod would otherwise lack what they add.
func (e *Engine) AnswerUndecided(ctx context.Context, s *Snapshot, p decision.UntypedPoint, subject decision.Subject, in any) any {
	extended := s.IsPointExtended(p.Name, subject)
	strict := extended
	if p.StrictWhere != "" {
		strict = s.IsPointReplaced(p.Name, subject) || s.IsPointExtended(p.StrictWhere, subject)
	}
	out := p.Undecided(in, strict)
	// A bundle that replaces a point has replaced its exemptions too.
	if p.Exemption != "" && !s.IsPointReplaced(p.Name, subject) {
		if exempt, ok := e.askAside(ctx, s.withoutTenants(subject), p, p.Exemption, subject, in); ok {
			return exempt
		}
	}
	if p.WithBuiltin != nil && extended && !strict {
		if builtin, ok := e.askAside(ctx, e.base, p, p.Name, subject, in); ok {
			return p.WithBuiltin(in, out, builtin)
		}
	}
	return out
}

// askAside evaluates a rule, whose answers have the type of a point, for a decision that failed.
func (e *Engine) askAside(ctx context.Context, s *Snapshot, p decision.UntypedPoint, rule decision.Name, subject decision.Subject, in any) (any, bool) {
	out := reflect.New(p.Out)
	rec := e.decideRequest(ctx, s, &decisionRequest{
		name: rule, budget: p.Budget, subject: subject, in: in, aside: true, partial: true,
		answer: func(v ast.Value, pkg string) error { return e.readAnswer(p, in, out, v, pkg) },
	})
	if rec.Outcome != decision.Decided {
		return nil, false
	}
	return out.Elem().Interface(), true
}

// readAnswer decodes an answer into a pointer to the output of a point, and checks it.
func (e *Engine) readAnswer(p decision.UntypedPoint, in any, out reflect.Value, v ast.Value, pkg string) error {
	if err := e.codec.Decode(v, out.Interface(), answerLimits(p.MaxResult, p.MaxBytes)); err != nil {
		return err
	}
	if o, ok := out.Interface().(decision.OutputWithOrigin); ok {
		o.SetDefaultRules(pkg)
	}
	return p.Check(in, out.Elem().Interface())
}

// withoutTenants returns a snapshot without the own bundles of the subject's namespace. The platform's
// canaries of that namespace stay.
func (s *Snapshot) withoutTenants(subject decision.Subject) *Snapshot {
	in := s.scopeForSubject(subject)
	if in.tenant == "" {
		return s
	}
	alone := in.withoutOwn()
	return &Snapshot{revision: alone.revision, set: withoutBundles(s.set, in.own), cluster: alone, views: s.views}
}

// withheldFrom returns the IDs of the withheld bundles that take part in the answer of a point: by
// their rules, or by data that a rule reads.
func (v *compiledView) withheldFrom(name decision.Name) (ids []string) {
	if len(v.withheld) == 0 {
		return nil
	}
	reach := v.reachableRules(name)
	for _, b := range v.withheld {
		if takesPart(b, reach) {
			ids = append(ids, b.ID())
		}
	}
	return ids
}

// takesPart reports whether one of the rules is the bundle's, or reads its data.
func takesPart(b *bundle.Bundle, rules map[*ast.Rule]bool) bool {
	for r := range rules {
		if isOf(b, r) || len(b.Data) > 0 && readsData(r, b.Data) {
			return true
		}
	}
	return false
}

// isOf reports whether a rule is the bundle's. No two bundles of a view have a package in common.
func isOf(b *bundle.Bundle, r *ast.Rule) bool {
	if r.Module == nil {
		return false
	}
	for _, m := range b.Modules {
		if m.Package.Path.Equal(r.Module.Package.Path) {
			return true
		}
	}
	return false
}

// readsData reports whether a rule refers to something that is in the data, or may be.
func readsData(r *ast.Rule, data map[string]any) (found bool) {
	ast.WalkRefs(r, func(ref ast.Ref) bool {
		found = found || ref.HasPrefix(ast.DefaultRootRef) && hasData(data, ref[1:])
		return found
	})
	return found
}

// PointsWithheld returns the prepared points whose decisions are the strictest answers because one of
// these bundles takes part in them and is withheld.
func (e *Engine) PointsWithheld(bundles ...*bundle.Bundle) []decision.Name {
	return e.pointsWithheld(e.active.Load(), bundles)
}

func (e *Engine) pointsWithheld(s *Snapshot, bundles bundle.Set) (points []decision.Name) {
	withheld := s.set.WithheldBundles().IDs()
	var parts []func(decision.Name) bool
	for _, b := range bundles {
		if slices.Contains(withheld, b.ID()) {
			parts = append(parts, s.partOf(b))
		}
	}
	for _, p := range e.points {
		if slices.ContainsFunc(parts, func(takesPart func(decision.Name) bool) bool { return takesPart(p) }) {
			points = append(points, p)
		}
	}
	return points
}
