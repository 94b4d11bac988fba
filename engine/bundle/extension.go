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
	// Stricter rules can only ever refuse or delay, reorder the workload's own
	// pods, or be asked more, so a tenant may have them.
	Stricter bool
	// Set is true when the rule must be written with contains, so that those of
	// all packages can be joined.
	Set     bool
	Meaning string
	// Answer is what the rule has for a value or, if it is a set, each of its
	// elements; nil while no point reads it.
	Answer reflect.Type
}

// Extensions lists them.
func Extensions() []Extension {
	hold, deny := reflect.TypeFor[decision.Hold](), reflect.TypeFor[decision.Deny]()
	exempt, guard := reflect.TypeFor[decision.Exemption](), reflect.TypeFor[protection.Guard]()
	wish := reflect.TypeFor[injection.Wish]()
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
	for _, d := range Domains() {
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

// Domains lists those that decision points are in.
func Domains() []string {
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
		if len(extensions(p.Name.Domain(), Tenant)) > 0 {
			out = append(out, p.Name)
		}
	}
	return out
}

// extensions of a domain that a kind of bundle may have, or all of them.
func extensions(domain string, kind Kind) (rules []Extension) {
	for _, x := range Extensions() {
		if x.Domain == domain && (kind != Tenant || x.Stricter) {
			rules = append(rules, x)
		}
	}
	return rules
}

// Check reports everything in a user's bundle that is not allowed, or that no
// decision point reads.
func (b *Bundle) Check() module.Problems {
	c := &checker{bundle: b, heard: map[string]bool{}}
	for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
		c.module(b.Modules[file])
	}
	c.unheard()
	for _, file := range slices.Sorted(maps.Keys(b.Tests)) {
		c.test(b.Tests[file])
	}
	c.data()
	c.problems = append(c.problems, c.bundle.roots()...)
	if len(b.Modules) == 0 {
		c.problems = append(c.problems, module.Problem{File: b.Name, Row: 1, Col: 1, Message: "the bundle has no policy"})
	}
	return c.problems.Coded("contract_error")
}

type checker struct {
	bundle   *Bundle
	problems module.Problems
	// heard has the packages in which some rule extends or replaces something.
	heard map[string]bool
}

func (c *checker) report(loc *ast.Location, format string, args ...any) {
	c.problems = append(c.problems, module.At(loc, format, args...))
}

// allowed says which packages a bundle may have, for messages.
func (c *checker) allowed() string {
	if c.bundle.Kind == Tenant {
		return "a bundle of a namespace may have extend.rollout.<name>, extend.protection.<name>, extend.node.<name> and extend.placement.<name>"
	}
	return "allowed are extend.<domain>.<name> and override.<domain>, where the domain is one of " + strings.Join(Domains(), ", ")
}

// RefersOutside reports whether a module of the bundle refers to packages or data that are not written out, or not the
// bundle's own. Check refuses a bundle of a namespace that does.
func (b *Bundle) RefersOutside() bool {
	c := checker{bundle: b}
	for _, m := range b.Modules {
		c.inside(m)
	}
	return len(c.problems) > 0
}

// inside reports what a tenant's module refers to of others: what platform
// engineers or the policies themselves know is none of its business, and a
// reference that is computed could be to anything.
func (c *checker) inside(m *ast.Module) {
	ast.WalkTerms(m, func(t *ast.Term) bool {
		ref, ok := t.Value.(ast.Ref)
		if ok && ref.HasPrefix(ast.DefaultRootRef) && !c.owns(ref.GroundPrefix()) {
			c.report(t.Location, "%s is not its own: a bundle of a namespace may refer to its input and to packages and data of its own, written out", ref)
		}
		return false
	})
}

// owns says whether a path is in a package of the bundle.
func (c *checker) owns(path ast.Ref) bool {
	for _, m := range c.bundle.Modules {
		if path.HasPrefix(m.Package.Path) {
			return true
		}
	}
	return false
}

func (c *checker) module(m *ast.Module) {
	path := module.PackagePath(m)
	kind, domain, ok := c.pkg(m)
	if !ok {
		return
	}
	if c.bundle.Kind == Tenant {
		c.inside(m)
	}
	ast.WalkExprs(m, func(x *ast.Expr) bool {
		if x.IsCall() && x.Operator().Equal(ast.Equality.Ref()) {
			c.report(x.Location, "= unifies, which cannot be stopped when two large values are: write := to assign and == to compare")
		}
		return false
	})
	for _, r := range m.Rules {
		if kind == "extend" {
			c.extends(path, domain, r)
		} else if slices.ContainsFunc(catalog.All(), func(p decision.Any) bool { return string(p.Name) == domain+"/"+ruleName(r) }) {
			c.heard[path] = true
		}
	}
}

// pkg checks the package of a module.
func (c *checker) pkg(m *ast.Module) (kind, domain string, ok bool) {
	loc, path := m.Package.Location, module.PackagePath(m)
	parts := make([]string, 0, 3)
	for _, t := range m.Package.Path[1:] {
		part, _ := t.Value.(ast.String)
		parts = append(parts, string(part))
	}
	switch {
	case len(parts) == 3 && parts[0] == "extend" && slices.Contains(Domains(), parts[1]):
		if len(extensions(parts[1], c.bundle.Kind)) == 0 {
			c.report(loc, "package %s: %s", path, c.allowed())
			return "", "", false
		}
		return "extend", parts[1], true
	case len(parts) == 2 && parts[0] == "override" && slices.Contains(Domains(), parts[1]) && c.bundle.Kind != Tenant:
		return "override", parts[1], true
	case len(parts) == 2 && parts[0] == "override" && c.bundle.Kind == Tenant:
		c.report(loc, "package %s: only platform engineers may replace a decision, with a ClusterPolicyBundle; %s", path, c.allowed())
	case len(parts) == 3 && parts[0] == "override":
		c.report(loc, "package %s: a decision is replaced by the rule %s in package override.%s", path, parts[2], parts[1])
	default:
		c.report(loc, "package %s is not one a bundle may have: %s", path, c.allowed())
	}
	return "", "", false
}

// extends checks one rule of a package that extends a domain.
func (c *checker) extends(path, domain string, r *ast.Rule) {
	name := ruleName(r)
	var mine *Extension
	known := false
	for _, x := range Extensions() {
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
		c.report(r.Location, "%s means nothing in %s, where a package may have %s", name, domain, names(extensions(domain, c.bundle.Kind)))
	case mine == nil: // a rule of its own
	case c.bundle.Kind == Tenant && !mine.Stricter:
		c.report(r.Location, "%s (%s) is for platform engineers; a bundle of a namespace may have %s", name, mine.Meaning, names(extensions(domain, Tenant)))
	case mine.Set && r.Head.RuleKind() != ast.MultiValue:
		c.report(r.Location, "%s must be a set, written `%s contains ... if ...`, so that all packages are heard", name, name)
	case r.Head.Args != nil:
		c.report(r.Location, "%s must not be a function", name)
	case mine.Answer == nil:
		c.report(r.Location, "%s (%s) has no effect: no decision point of this release reads it in %s", name, mine.Meaning, domain)
	default:
		c.heard[path] = true
	}
}

func names(list []Extension) string {
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

// unheard reports packages that neither extend nor replace anything nor are
// referred to by one that does. A misspelt `holds` would otherwise stop nothing.
func (c *checker) unheard() {
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
			c.report(m.Package.Location, "package %s replaces nothing: it needs a rule named like a point of %s: %s", path, domain, strings.Join(points(domain), ", "))
			continue
		}
		c.report(m.Package.Location, "package %s extends nothing: it needs one of the rules %s", path, names(extensions(domain, c.bundle.Kind)))
	}
}

func points(domain string) (out []string) {
	for _, p := range catalog.All() {
		if p.Name.Domain() == domain {
			out = append(out, strings.TrimPrefix(string(p.Name), domain+"/"))
		}
	}
	return out
}

// test checks that tests stay beside the policy: a test in the package of
// another policy would change what it tests.
func (c *checker) test(m *ast.Module) {
	path := module.PackagePath(m)
	if !strings.HasPrefix(path, "extend.") && !strings.HasPrefix(path, "override.") {
		c.report(m.Package.Location, "package %s: tests are in a package below extend or override, such as that of the policy with _test appended", path)
	}
}

// data checks that base data is beside the bundle's own packages, and does not
// pose as a rule. What counts is where it is, not in which file: `opa build`
// puts all of it into one.
func (c *checker) data() {
	for _, file := range slices.Sorted(maps.Keys(c.bundle.documents)) {
		at := &ast.Location{File: file, Row: 1, Col: 1}
		for _, steps := range leaves(c.bundle.documents[file]) {
			var last any = c.bundle.documents[file]
			for _, step := range steps {
				last = last.(map[string]any)[step]
			}
			_, empty := last.(map[string]any)
			if steps[0] != "extend" || len(steps) < 4 && !empty {
				c.report(at, "data must be in a folder extend/<domain>/<name>, beside a package; this is at %s", strings.Join(steps, "/"))
				continue
			}
			if len(steps) < 4 {
				continue // a folder with nothing in it
			}
			own := ast.DefaultRootRef
			for _, step := range steps[:3] {
				own = own.Append(ast.StringTerm(step))
			}
			if c.bundle.Kind == Tenant && !c.owns(own) {
				c.report(at, "data of a bundle of a namespace must be beside a package of its own; this is at %s", strings.Join(steps, "/"))
				continue
			}
			if key := steps[3]; slices.ContainsFunc(Extensions(), func(x Extension) bool { return x.Rule == key }) {
				c.report(at, "%s must be a rule, not data", key)
			}
		}
	}
}
