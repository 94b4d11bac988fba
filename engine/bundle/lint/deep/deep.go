// SPDX-License-Identifier: Apache-2.0

// Package deep finds what the rules of a bundle can never do: rules that are never true, conditions without
// which nothing changes, holds and denials that others cover, and reasons that are new in each round.
//
// What it finds is so for each input that a decision point has. It does not find all there is.
package deep

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/lint"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/implication"
	"github.com/regatta-sh/regatta/engine/module"
)

// The rules of this package.
const (
	NeverTrue  = "never-true"
	AlwaysTrue = "always-true"
	Covered    = "covered"
	EachRound  = "changes-each-round"
	NeverSeen  = "never-seen"
)

// Rule is a check, and why it is made.
type Rule struct{ ID, Meaning string }

// AllRules lists all rules.
func AllRules() []Rule {
	return []Rule{
		{NeverTrue, "Conditions that contradict each other, or the facts that there are, make a rule that is never true."},
		{AlwaysTrue, "A condition that is true wherever the others are says something that it does not do."},
		{Covered, "A hold or a denial adds nothing where another one is true wherever it is, and reaches as much."},
		{EachRound, "A reason, a message or a key with the time in it is another one in each round, and so is each condition and event."},
		{NeverSeen, "No input that was tried made the rule true, which is a hint and no proof."},
	}
}

// CheckBundle checks all modules of a bundle by their structure.
func CheckBundle(b *bundle.Bundle) []lint.Finding {
	c := newChecker(b)
	for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
		m := b.Modules[file]
		for _, rule := range m.Rules {
			for at := rule; at != nil; at = at.Else {
				c.checkRule(m, rule, at)
			}
		}
	}
	c.compareClauses()
	return lint.SortFindings(c.found)
}

type checker struct {
	reader *implication.Reader
	// readers are the domains with whose inputs the rules of a package are evaluated.
	readers map[string][]string
	clauses []clause
	found   []lint.Finding
}

func newChecker(b *bundle.Bundle) *checker {
	return &checker{reader: implication.NewReader(b.Modules), readers: listReaders(b.Modules)}
}

func (c *checker) reportFinding(rule string, at *ast.Location, format string, args ...any) {
	c.found = append(c.found, lint.Finding{Rule: rule, Problem: module.ProblemAt(at, format, args...)})
}

// domainOf returns the domain of a package; empty if it has none.
func domainOf(m *ast.Module) string {
	path := strings.Split(module.PackagePath(m), ".")
	if len(path) > 1 && (path[0] == "extend" || path[0] == "override") {
		return path[1]
	}
	return path[0]
}

// listReaders returns, by package, the domains of the packages that refer to it, which evaluate its rules with
// their own inputs: directly, or by others.
func listReaders(modules map[string]*ast.Module) map[string][]string {
	refersTo := map[string]map[string]bool{}
	for _, m := range modules {
		own := module.PackagePath(m)
		if refersTo[own] == nil {
			refersTo[own] = map[string]bool{}
		}
		note := func(ref ast.Ref) bool {
			if !ref.HasPrefix(ast.DefaultRootRef) {
				return false
			}
			prefix := ref.GroundPrefix()
			for _, o := range modules {
				if prefix.HasPrefix(o.Package.Path) || o.Package.Path.HasPrefix(prefix) {
					refersTo[own][module.PackagePath(o)] = true
				}
			}
			return false
		}
		for _, i := range m.Imports {
			if ref, ok := i.Path.Value.(ast.Ref); ok {
				note(ref)
			}
		}
		ast.WalkRefs(m, note)
	}
	out := map[string][]string{}
	for _, m := range modules {
		known := map[string]bool{}
		next := []string{module.PackagePath(m)}
		for len(next) > 0 {
			path := next[0]
			if next = next[1:]; known[path] {
				continue
			}
			known[path] = true
			if !slices.Contains(out[path], domainOf(m)) {
				out[path] = append(out[path], domainOf(m))
			}
			next = append(next, slices.Sorted(maps.Keys(refersTo[path]))...)
		}
	}
	return out
}

// inputsOf returns the inputs with which the rules of a module are evaluated.
func (c *checker) inputsOf(m *ast.Module) implication.Inputs {
	domains := c.readers[module.PackagePath(m)]
	if slices.ContainsFunc(domains, func(d string) bool { return !slices.Contains(bundle.AllDomains(), d) }) {
		return implication.Inputs{nil}
	}
	var out implication.Inputs
	for _, p := range catalog.All() {
		if slices.Contains(domains, p.Name.Domain()) {
			out = append(out, p.In)
		}
	}
	return out
}

// checkRule checks one rule, or one branch of a rule with an else.
func (c *checker) checkRule(m *ast.Module, rule, at *ast.Rule) {
	body, ok := c.reader.ReadRule(m, at)
	if !ok {
		return
	}
	inputs := c.inputsOf(m)
	name := nameOf(rule)
	if no, found := body.FindContradiction(inputs); found {
		c.reportFinding(NeverTrue, placeOf(no.Conditions, at), "%s", describeContradiction(name, m, no))
		return
	}
	for _, r := range body.FindRedundancies(inputs) {
		c.reportFinding(AlwaysTrue, r.Condition.Location, "%s", describeRedundancy(r))
	}
	c.checkMoving(at, body)
	if !rule.Default && rule.Else == nil && len(rule.Head.Ref()) == 1 && rule.Head.RuleKind() == ast.MultiValue {
		if fields, ok := fieldsOf(body.Key); ok && (name == "hold" || name == "deny") && strings.HasPrefix(module.PackagePath(m), "extend.") {
			c.clauses = append(c.clauses, clause{module: m, rule: at, name: name, body: body, fields: fields})
		}
	}
}

func nameOf(rule *ast.Rule) string { return rule.Head.Ref()[0].String() }

// placeOf is where the last of some conditions is.
func placeOf(all []implication.Condition, rule *ast.Rule) *ast.Location {
	if len(all) == 0 || all[len(all)-1].Location == nil {
		return rule.Location
	}
	return all[len(all)-1].Location
}

func describeContradiction(name string, m *ast.Module, no implication.Contradiction) string {
	never := name + " is never true: "
	switch {
	case len(no.Missing) > 0 && len(no.Conditions) == 1 && len(no.Missing) == 1:
		return never + fmt.Sprintf("no decision point of %s has %s", domainOf(m), no.Missing[0])
	case len(no.Missing) > 0:
		return never + fmt.Sprintf("no decision point of %s has all of %s, which %s", domainOf(m), quoteAll(no.Conditions, len(no.Conditions)-1), describeNeed(no.Conditions))
	case len(no.Conditions) == 1 && no.Type != "":
		return never + fmt.Sprintf("`%s` is true of no %s that %s can be", no.Conditions[0].Text, no.Type, no.Fact)
	case len(no.Conditions) == 1:
		return never + fmt.Sprintf("`%s` cannot be true", no.Conditions[0].Text)
	case len(no.Conditions) == 2:
		return never + quoteAll(no.Conditions, 1) + " contradict each other"
	}
	return never + quoteAll(no.Conditions, len(no.Conditions)-1) + " cannot be true together"
}

func describeNeed(all []implication.Condition) string {
	if len(all) == 1 {
		return "it needs"
	}
	return "it needs together"
}

func describeRedundancy(r implication.Redundancy) string {
	if len(r.By) == 0 {
		return fmt.Sprintf("`%s` is true of each input, so it can go", r.Condition.Text)
	}
	return fmt.Sprintf("`%s` is true wherever %s, so it can go", r.Condition.Text, quoteWithRows(r.By)+choosePlural(len(r.By), " is", " are"))
}

func choosePlural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// quoteAll quotes conditions, and says where the first ones are: the last ones are at the place of the finding.
func quoteAll(all []implication.Condition, placed int) string {
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = "`" + c.Text + "`"
		if i < placed && c.Location != nil && len(all) > 1 && c.Location.Row != all[len(all)-1].Location.Row {
			texts[i] += fmt.Sprintf(" (line %d)", c.Location.Row)
		}
	}
	return joinWords(texts)
}

func quoteWithRows(all []implication.Condition) string {
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = "`" + c.Text + "`"
		if c.Location != nil {
			texts[i] += fmt.Sprintf(" (line %d)", c.Location.Row)
		}
	}
	return joinWords(texts)
}

func joinWords(texts []string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " and " + texts[len(texts)-1]
}
