// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// Rule is the metadata of a rule that has an id.
type Rule struct {
	ID          string `json:"id"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Bundle      string `json:"bundle,omitempty"`
	Place       string `json:"place,omitempty"` // file:row:col
	// Inputs are the facts that the rule refers to, and the rules of its package
	// that it uses.
	Inputs []ast.Ref `json:"-"`
}

// FindRule looks up a rule by its id in records.
func (s *Snapshot) FindRule(subject decision.Subject, id string) (Rule, bool) {
	in := s.scopeForSubject(subject)
	if r, ok := in.platform.rules[id]; ok {
		return *r, true
	}
	if in.tenant != "" {
		if v, err := s.ownView(in); err == nil && v.rules[id] != nil {
			return *v.rules[id], true
		}
	}
	return Rule{ID: id}, false
}

// LabelledRules returns the rules of a bundle that have their own id, by id. Rules without an id have
// that of their package, and cannot be distinguished.
func LabelledRules(b *bundle.Bundle) []Rule {
	byID := map[string]Rule{}
	for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
		for _, a := range b.Modules[file].Annotations {
			id, ok := a.Labels[module.LabelID].(string)
			if _, known := byID[id]; !ok || known || a.Scope == "package" {
				continue
			}
			byID[id] = Rule{ID: id, Title: a.Title, Description: strings.TrimSpace(a.Description), Bundle: b.ID(), Place: module.ProblemAt(a.Location, "").SourcePosition()}
		}
	}
	out := slices.Collect(maps.Values(byID))
	slices.SortFunc(out, func(a, b Rule) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// rulesOf finds the rules of bundles by their ids. A rule without its own id has that of its package.
func rulesOf(set bundle.Set, c *ast.Compiler) map[string]*Rule {
	out := map[string]*Rule{}
	add := func(b *bundle.Bundle, id string, loc *ast.Location) *Rule {
		if out[id] == nil {
			out[id] = &Rule{ID: id, Bundle: b.ID(), Place: module.ProblemAt(loc, "").SourcePosition()}
		}
		return out[id]
	}
	for _, b := range set {
		for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
			m := b.Modules[file]
			pkg := packageID(m)
			for _, a := range m.Annotations {
				if id, ok := a.Labels[module.LabelID].(string); ok {
					r := add(b, id, a.Location)
					r.Title, r.Description = a.Title, strings.TrimSpace(a.Description)
				}
			}
			for _, rule := range c.Modules[moduleKey(b, file)].Rules {
				r := add(b, idOf(rule, pkg), rule.Location)
				r.Inputs = collectInputs(c, rule, r.Inputs, map[*ast.Rule]bool{})
			}
		}
	}
	return out
}

// idOf returns the id of a rule: its own, or that of its package.
func idOf(rule *ast.Rule, pkg string) string {
	for _, a := range slices.Backward(rule.Annotations) {
		if own, ok := a.Labels[module.LabelID].(string); ok && a.Scope != "package" {
			return own
		}
	}
	return pkg
}

// packageID is the id of rules without their own.
func packageID(m *ast.Module) string {
	for _, a := range m.Annotations {
		if id, ok := a.Labels[module.LabelID].(string); ok && a.Scope == "package" {
			return id
		}
	}
	return module.PackagePath(m)
}

// collectInputs adds the facts that a rule refers to, up to the fixed part of their paths, and the
// facts of the rules of its package that it uses.
func collectInputs(c *ast.Compiler, rule *ast.Rule, found []ast.Ref, seen map[*ast.Rule]bool) []ast.Ref {
	seen[rule] = true
	ast.WalkRefs(rule, func(ref ast.Ref) bool {
		if !ref.HasPrefix(ast.InputRootRef) {
			return false
		}
		ref = ref.GroundPrefix()
		if len(ref) > 1 && !slices.ContainsFunc(found, func(r ast.Ref) bool { return r.Equal(ref) }) {
			found = append(found, ref)
		}
		return false
	})
	for dep := range c.Graph.Dependencies(rule) {
		used, ok := dep.(*ast.Rule)
		if ok && !seen[used] && used.Module.Package.Path.Equal(rule.Module.Package.Path) {
			found = collectInputs(c, used, found, seen)
		}
	}
	return found
}

// cutName splits domain/point.
func cutName(name decision.Name) (domain, point string, ok bool) {
	domain, point, ok = strings.Cut(string(name), "/")
	return domain, point, ok && domain != "" && point != "" && !strings.Contains(point, "/")
}

// ruleIDs returns the ids among the labels that OPA collected, each once.
func ruleIDs(labels []map[string]any) []string {
	if len(labels) == 0 {
		return nil
	}
	out := make([]string, 0, len(labels))
	for _, l := range labels {
		if id, ok := l[module.LabelID].(string); ok && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
