// SPDX-License-Identifier: Apache-2.0

// Package lint finds policies that compile and answer correctly, but would be slow with many pods,
// fail open in other tools, or give users no reason.
package lint

import (
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/module"
)

// Finding is a problem that a rule found.
type Finding struct {
	Rule string `json:"rule"`
	// Note is true if the finding is no proof that something is to be changed.
	Note bool `json:"note,omitempty"`
	module.Problem
}

// Rule is a check of modules.
type Rule struct {
	ID      string
	Meaning string
	// find checks one module; the bundle is for facts that are not in the module.
	find func(m *ast.Module, b *bundle.Bundle) []module.Problem
}

// AllRules lists all rules.
func AllRules() []Rule {
	return []Rule{
		{"no-walk", "walk visits every path of a document, and shared parts once for each way to them.", findWalks},
		{"not-import", "Without the import, other tools read a `not` over a missing fact as undefined, and a denial fails open.", findUnimportedNot},
		{"missing-metadata", "Explanations and records name a rule by its label id and tell people its title and description.", findMissingMetadata},
		{"missing-tests", "A policy without a test is tried for the first time by a rollout.", findMissingTests},
		{"pod-text", "Text that is made for each pod, such as with sprintf, is most of what a rank costs.", findPodText},
		{"pod-arithmetic", "Arithmetic for each pod is slow, and numbers that safety depends on are facts.", findPodArithmetic},
		{"pod-function", "A function that is called for each pod is eight times slower than its conditions written inline.", findPodFunctions},
		{"pod-object", "A partial object over pods is seventeen times slower than one comprehension.", partialObjects},
		{"pods-by-pods", "Each pod is held against each pod: a million steps for a thousand of them.", findNestedPodLoops},
	}
}

// CheckBundle checks all modules of a bundle. Tests are checked only for code that other tools read
// differently.
func CheckBundle(b *bundle.Bundle) []Finding {
	var out []Finding
	for _, r := range AllRules() {
		for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
			for _, p := range r.find(b.Modules[file], b) {
				out = append(out, Finding{Rule: r.ID, Problem: p})
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(b.Tests)) {
		for _, p := range findUnimportedNot(b.Tests[file], b) {
			out = append(out, Finding{Rule: "not-import", Problem: p})
		}
	}
	return SortFindings(out)
}

// SortFindings sorts findings by their places, and leaves each in once.
func SortFindings(all []Finding) []Finding {
	slices.SortStableFunc(all, func(a, b Finding) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Row != b.Row {
			return a.Row - b.Row
		}
		return a.Col - b.Col
	})
	return slices.Compact(all)
}

func findWalks(m *ast.Module, _ *bundle.Bundle) (out []module.Problem) {
	visitCalls(m, func(name string, at *ast.Location) {
		if name == "walk" {
			out = append(out, module.ProblemAt(at, "walk is not allowed: name the path, or iterate over the one list that is meant"))
		}
	})
	return out
}

func findUnimportedNot(m *ast.Module, _ *bundle.Bundle) []module.Problem {
	at := module.UnimportedNot(m)
	if at == nil {
		return nil
	}
	return []module.Problem{module.ProblemAt(at, "write `import future.keywords.not` below the package, so that `not` is true in every tool where what it negates is undefined")}
}

// findMissingMetadata requires a title, a description and an id for each rule that decides something;
// all but the id may be those of the package.
func findMissingMetadata(m *ast.Module, _ *bundle.Bundle) (out []module.Problem) {
	pkg := &ast.Annotations{}
	for _, a := range m.Annotations {
		if a.Scope == "package" {
			pkg = a
		}
	}
	for _, r := range m.Rules {
		if !isDecisionRule(m, r) {
			continue
		}
		own := &ast.Annotations{}
		for _, a := range r.Annotations {
			own = a
		}
		var missing []string
		if own.Title == "" && pkg.Title == "" {
			missing = append(missing, "title")
		}
		if own.Description == "" && pkg.Description == "" {
			missing = append(missing, "description")
		}
		// Reading gives every package an id, so the id of a package counts only if the author wrote it.
		inherited := pkg.Labels[module.LabelID]
		if own.Labels[module.LabelID] == nil && (inherited == nil || inherited == module.PackagePath(m)) {
			missing = append(missing, "labels.id")
		}
		if len(missing) > 0 {
			out = append(out, module.ProblemAt(r.Location, "write a comment `# METADATA` with %s above %s: that is what explanations show", strings.Join(missing, ", "), r.Head.Name))
		}
	}
	return out
}

// isDecisionRule is true for rules that extend or replace a decision, but not for rules that only
// declare something, which no explanation shows.
func isDecisionRule(m *ast.Module, r *ast.Rule) bool {
	path := strings.Split(module.PackagePath(m), ".")
	name := strings.TrimSuffix(r.Head.Ref()[0].String(), ".")
	switch {
	case r.Default || len(path) < 2:
		return false
	case path[0] == "override":
		return slices.Contains(pointNames(path[1]), name)
	case path[0] != "extend" || name == "guard" || name == "settings":
		return false
	}
	return slices.ContainsFunc(bundle.AllExtensions(), func(x bundle.Extension) bool { return x.Domain == path[1] && x.Rule == name })
}

// findMissingTests requires that a test of the bundle refers to the package, or to the built-in point
// that the package takes part in.
func findMissingTests(m *ast.Module, b *bundle.Bundle) []module.Problem {
	path := module.PackagePath(m)
	if !slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool { return isDecisionRule(m, r) }) {
		return nil
	}
	domain := strings.Split(path, ".")[1]
	for _, t := range b.Tests {
		if p := module.PackagePath(t); p == path {
			return nil
		}
		asked := false
		ast.WalkRefs(t, func(ref ast.Ref) bool {
			text := strings.TrimPrefix(ref.String(), "data.")
			asked = asked || isPathBelow(text, path) || isPathBelow(text, domain)
			return asked
		})
		if asked {
			return nil
		}
	}
	return []module.Problem{module.ProblemAt(m.Package.Location, "write a test in %s_test.rego: what it says of an input where it holds, and of one where it does not", strings.TrimSuffix(m.Package.Location.File, ".rego"))}
}

func isPathBelow(path, root string) bool { return path == root || strings.HasPrefix(path, root+".") }
