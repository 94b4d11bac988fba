// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/decision/injection"
	"github.com/regatta-sh/regatta/engine/decision/node"
	"github.com/regatta-sh/regatta/engine/decision/placement"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/module"
)

// Extension is a rule by which a user's package extend.<domain>.<any> takes part
// in the decisions of a domain (policies/README.md, How to change a decision).
type Extension struct {
	Domain, Rule string
	// Stricter is true for rules that can only refuse or delay, reorder the workload's own pods, or be
	// asked more often, so that a tenant may have them.
	Stricter bool
	// Set is true if the rule must be written with contains, so that the sets of all packages can be
	// joined.
	Set     bool
	Meaning string
	// Answer is the type of the rule's value or, for a set, of each element; nil while no point reads the
	// rule.
	Answer reflect.Type
}

// AllExtensions lists all extensions.
func AllExtensions() []Extension {
	hold, deny := reflect.TypeFor[decision.Hold](), reflect.TypeFor[decision.Deny]()
	exempt, guard := reflect.TypeFor[decision.Exemption](), reflect.TypeFor[protection.Guard]()
	wish := reflect.TypeFor[injection.ExtensionResult]()
	list := []Extension{
		{Domain: "rollout", Rule: "hold", Stricter: true, Set: true, Meaning: "stop new disruption", Answer: hold},
		{Domain: "rollout", Rule: "rank", Stricter: true, Meaning: "put pods first or last", Answer: reflect.TypeFor[map[string]float64]()},
		{Domain: "protection", Rule: "deny", Stricter: true, Set: true, Meaning: "refuse", Answer: deny},
		{Domain: "protection", Rule: "guard", Stricter: true, Set: true, Meaning: "be asked about more", Answer: guard},
		{Domain: "protection", Rule: "exempt", Set: true, Meaning: "break glass", Answer: exempt},
		{Domain: "injection", Rule: "skip", Set: true, Meaning: "leave a sidecar out", Answer: wish},
		{Domain: "injection", Rule: "add", Set: true, Meaning: "add a sidecar", Answer: wish},
		{Domain: "node", Rule: "hold", Stricter: true, Set: true, Meaning: "restart or pull nothing now", Answer: reflect.TypeFor[node.Hold]()},
		{Domain: "node", Rule: "deny", Stricter: true, Set: true, Meaning: "not this restart, container or image", Answer: reflect.TypeFor[node.Denial]()},
		{Domain: "node", Rule: "rank", Stricter: true, Meaning: "put nodes first or last", Answer: reflect.TypeFor[map[string]float64]()},
		{Domain: "placement", Rule: "hold", Stricter: true, Set: true, Meaning: "move nothing now", Answer: reflect.TypeFor[placement.Hold]()},
		{Domain: "placement", Rule: "deny", Stricter: true, Set: true, Meaning: "never there", Answer: reflect.TypeFor[placement.Denial]()},
		{Domain: "placement", Rule: "rank", Stricter: true, Meaning: "put nodes or pods first or last", Answer: reflect.TypeFor[map[string]float64]()},
	}
	for _, d := range AllDomains() {
		settings := Extension{Domain: d, Rule: "settings", Meaning: "change a documented knob"}
		switch d {
		case "rollout":
			settings.Answer = reflect.TypeFor[rollout.Settings]()
		case "protection":
			settings.Answer = reflect.TypeFor[protection.Settings]()
		case "injection":
			settings.Answer = reflect.TypeFor[injection.Settings]()
		}
		list = append(list, settings)
	}
	return list
}

// AllDomains lists the domains that have decision points.
func AllDomains() []string {
	var out []string
	for _, p := range catalog.All() {
		if d := p.Name.Domain(); !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	slices.Sort(out)
	return out
}

// PointsOfTenants lists the points that the bundle of a namespace may take part in.
func PointsOfTenants() []decision.Name {
	var out []decision.Name
	for _, p := range catalog.All() {
		if len(allowedExtensions(p.Name.Domain(), Tenant)) > 0 {
			out = append(out, p.Name)
		}
	}
	return out
}

// allowedExtensions returns the extensions of a domain that a kind of bundle may have.
func allowedExtensions(domain string, kind Kind) (rules []Extension) {
	for _, x := range AllExtensions() {
		if x.Domain == domain && (kind != Tenant || x.Stricter) {
			rules = append(rules, x)
		}
	}
	return rules
}

// CheckContract reports all rules and data in a user's bundle that are not allowed, or that no
// decision point reads.
func (b *Bundle) CheckContract() module.Problems {
	c := &checker{bundle: b, heard: map[string]bool{}}
	for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
		c.checkModule(b.Modules[file])
	}
	c.checkUnusedPackages()
	for _, file := range slices.Sorted(maps.Keys(b.Tests)) {
		c.checkTestModule(b.Tests[file])
	}
	c.checkBaseData()
	c.problems = append(c.problems, c.bundle.checkRoots()...)
	if len(b.Modules) == 0 {
		c.problems = append(c.problems, module.Problem{File: b.Name, Row: 1, Col: 1, Message: "the bundle has no policy"})
	}
	return c.problems.WithCode("contract_error")
}

type checker struct {
	bundle   *Bundle
	problems module.Problems
	// heard has the packages in which some rule extends or replaces something.
	heard map[string]bool
}

func (c *checker) reportProblem(loc *ast.Location, format string, args ...any) {
	c.problems = append(c.problems, module.ProblemAt(loc, format, args...))
}

// allowedPackages says which packages a bundle may have, for messages.
func (c *checker) allowedPackages() string {
	if c.bundle.Kind == Tenant {
		return "a bundle of a namespace may have extend.rollout.<name>, extend.protection.<name>, extend.node.<name> and extend.placement.<name>"
	}
	return "allowed are extend.<domain>.<name> and override.<domain>, where the domain is one of " + strings.Join(AllDomains(), ", ")
}

// RefersOutside reports whether a module of the bundle refers to packages or data of others, or by a computed
// reference. CheckContract refuses such a bundle of a namespace.
func (b *Bundle) RefersOutside() bool {
	c := checker{bundle: b}
	for _, m := range b.Modules {
		c.checkReferences(m)
	}
	return len(c.problems) > 0
}

// checkReferences reports references of a tenant's module to packages or data of others, which it must
// not read. A computed reference is reported too, since it could refer to anything.
func (c *checker) checkReferences(m *ast.Module) {
	ast.WalkTerms(m, func(t *ast.Term) bool {
		ref, ok := t.Value.(ast.Ref)
		if ok && ref.HasPrefix(ast.DefaultRootRef) && !c.ownsPath(ref.GroundPrefix()) {
			c.reportProblem(t.Location, "%s is not its own: a bundle of a namespace may refer to its input and to packages and data of its own, written out", ref)
		}
		return false
	})
}

// ownsPath reports whether a path is in a package of the bundle.
func (c *checker) ownsPath(path ast.Ref) bool {
	for _, m := range c.bundle.Modules {
		if path.HasPrefix(m.Package.Path) {
			return true
		}
	}
	return false
}

func (c *checker) checkModule(m *ast.Module) {
	path := module.PackagePath(m)
	kind, domain, ok := c.checkPackage(m)
	if !ok {
		return
	}
	if c.bundle.Kind == Tenant {
		c.checkReferences(m)
	}
	ast.WalkExprs(m, func(x *ast.Expr) bool {
		if x.IsCall() && x.Operator().Equal(ast.Equality.Ref()) {
			c.reportProblem(x.Location, "= unifies, which cannot be stopped when two large values are: write := to assign and == to compare")
		}
		return false
	})
	for _, r := range m.Rules {
		if kind == "extend" {
			c.checkExtension(path, domain, r)
		} else if slices.ContainsFunc(catalog.All(), func(p decision.UntypedPoint) bool { return string(p.Name) == domain+"/"+ruleName(r) }) {
			c.heard[path] = true
		}
	}
}

// checkPackage checks the package of a module.
func (c *checker) checkPackage(m *ast.Module) (kind, domain string, ok bool) {
	loc, path := m.Package.Location, module.PackagePath(m)
	parts := make([]string, 0, 3)
	for _, t := range m.Package.Path[1:] {
		part, _ := t.Value.(ast.String)
		parts = append(parts, string(part))
	}
	switch {
	case len(parts) == 3 && parts[0] == "extend" && slices.Contains(AllDomains(), parts[1]):
		if len(allowedExtensions(parts[1], c.bundle.Kind)) == 0 {
			c.reportProblem(loc, "package %s: %s", path, c.allowedPackages())
			return "", "", false
		}
		return "extend", parts[1], true
	case len(parts) == 2 && parts[0] == "override" && slices.Contains(AllDomains(), parts[1]) && c.bundle.Kind != Tenant:
		return "override", parts[1], true
	case len(parts) == 2 && parts[0] == "override" && c.bundle.Kind == Tenant:
		c.reportProblem(loc, "package %s: only platform engineers may replace a decision, with a ClusterPolicyBundle; %s", path, c.allowedPackages())
	case len(parts) == 3 && parts[0] == "override":
		c.reportProblem(loc, "package %s: a decision is replaced by the rule %s in package override.%s", path, parts[2], parts[1])
	default:
		c.reportProblem(loc, "package %s is not one a bundle may have: %s", path, c.allowedPackages())
	}
	return "", "", false
}

// checkExtension checks one rule of a package that extends a domain.
func (c *checker) checkExtension(path, domain string, r *ast.Rule) {
	name := ruleName(r)
	var mine *Extension
	known := false
	for _, x := range AllExtensions() {
		if x.Rule != name {
			continue
		}
		known = true
		if x.Domain == domain {
			mine = &x
		}
	}
	switch {
	case mine == nil && known:
		c.reportProblem(r.Location, "%s means nothing in %s, where a package may have %s", name, domain, extensionNames(allowedExtensions(domain, c.bundle.Kind)))
	case mine == nil: // a rule that only this package uses
	case c.bundle.Kind == Tenant && !mine.Stricter:
		c.reportProblem(r.Location, "%s (%s) is for platform engineers; a bundle of a namespace may have %s", name, mine.Meaning, extensionNames(allowedExtensions(domain, Tenant)))
	case mine.Set && r.Head.RuleKind() != ast.MultiValue:
		c.reportProblem(r.Location, "%s must be a set, written `%s contains ... if ...`, so that all packages are heard", name, name)
	case r.Head.Args != nil:
		c.reportProblem(r.Location, "%s must not be a function", name)
	case mine.Answer == nil:
		c.reportProblem(r.Location, "%s (%s) has no effect: no decision point of this release reads it in %s", name, mine.Meaning, domain)
	default:
		c.heard[path] = true
	}
}

func extensionNames(list []Extension) string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = x.Rule
	}
	return strings.Join(out, ", ")
}

// ruleName is the first part of the name of a rule.
func ruleName(r *ast.Rule) string {
	switch v := r.Head.Ref()[0].Value.(type) {
	case ast.Var:
		return string(v)
	case ast.String:
		return string(v)
	}
	return ""
}

// checkUnusedPackages reports packages that neither extend nor replace anything, and that no such
// package refers to. Otherwise a misspelled `holds` would have no effect and not be noticed.
func (c *checker) checkUnusedPackages() {
	used := map[string]bool{}
	for _, m := range c.bundle.Modules {
		own := module.PackagePath(m)
		use := func(ref ast.Ref) bool {
			if ref.HasPrefix(ast.DefaultRootRef) {
				for _, other := range c.bundle.Modules {
					if p := module.PackagePath(other); p != own && ref.HasPrefix(other.Package.Path) {
						used[p] = true
					}
				}
			}
			return false
		}
		for _, i := range m.Imports {
			if ref, ok := i.Path.Value.(ast.Ref); ok {
				use(ref)
			}
		}
		ast.WalkRefs(m, use)
	}
	for _, file := range slices.Sorted(maps.Keys(c.bundle.Modules)) {
		m := c.bundle.Modules[file]
		path := module.PackagePath(m)
		if c.heard[path] || used[path] || len(c.problems) > 0 {
			continue
		}
		c.heard[path] = true // once
		kind, domain, _ := strings.Cut(path, ".")
		domain, _, _ = strings.Cut(domain, ".")
		if kind == "override" {
			c.reportProblem(m.Package.Location, "package %s replaces nothing: it needs a rule named like a point of %s: %s", path, domain, strings.Join(pointNames(domain), ", "))
			continue
		}
		c.reportProblem(m.Package.Location, "package %s extends nothing: it needs one of the rules %s", path, extensionNames(allowedExtensions(domain, c.bundle.Kind)))
	}
}

func pointNames(domain string) (out []string) {
	for _, p := range catalog.All() {
		if p.Name.Domain() == domain {
			out = append(out, strings.TrimPrefix(string(p.Name), domain+"/"))
		}
	}
	return out
}

// checkTestModule checks that tests are in packages of their own policy: a test in the package of
// another policy would change that policy.
func (c *checker) checkTestModule(m *ast.Module) {
	path := module.PackagePath(m)
	if !strings.HasPrefix(path, "extend.") && !strings.HasPrefix(path, "override.") {
		c.reportProblem(m.Package.Location, "package %s: tests are in a package below extend or override, such as that of the policy with _test appended", path)
	}
}

// checkBaseData checks that base data is below the bundle's own packages, and does not take the place
// of a rule. The path of the data counts, not its file, since `opa build` puts all data into one file.
func (c *checker) checkBaseData() {
	for _, file := range slices.Sorted(maps.Keys(c.bundle.documents)) {
		at := &ast.Location{File: file, Row: 1, Col: 1}
		for _, steps := range leafPaths(c.bundle.documents[file]) {
			var last any = c.bundle.documents[file]
			for _, step := range steps {
				last = last.(map[string]any)[step]
			}
			_, empty := last.(map[string]any)
			if steps[0] != "extend" || len(steps) < 4 && !empty {
				c.reportProblem(at, "data must be in a folder extend/<domain>/<name>, beside a package; this is at %s", strings.Join(steps, "/"))
				continue
			}
			if len(steps) < 4 {
				continue // an empty folder
			}
			own := ast.DefaultRootRef
			for _, step := range steps[:3] {
				own = own.Append(ast.StringTerm(step))
			}
			if c.bundle.Kind == Tenant && !c.ownsPath(own) {
				c.reportProblem(at, "data of a bundle of a namespace must be beside a package of its own; this is at %s", strings.Join(steps, "/"))
				continue
			}
			if key := steps[3]; slices.ContainsFunc(AllExtensions(), func(x Extension) bool { return x.Rule == key }) {
				c.reportProblem(at, "%s must be a rule, not data", key)
			}
		}
	}
}
