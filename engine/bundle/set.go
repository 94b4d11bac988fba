// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/module"
)

// Set has the users' bundles that are active at the same time.
type Set []*Bundle

// DecidingIn returns the bundles that decide in a namespace: those of the platform, with canaries of
// the namespace in place of the bundles of the same name, and those of the namespace itself.
func (s Set) DecidingIn(namespace string) Set {
	var out Set
	canaries := s.CanariesIn(namespace)
	for _, b := range s {
		here := b.Kind == Builtin || !slices.ContainsFunc(canaries, func(c *Bundle) bool { return c.Name == b.Name })
		switch {
		case b.Kind == Tenant:
			here = b.Namespace == namespace
		case b.Canary != nil:
			here = b.canaryIn(namespace)
		}
		if here {
			out = append(out, b)
		}
	}
	return out
}

// Part has the bundles that decide in one namespace.
type Part struct {
	// Platform has the bundles of the platform that decide there, Own those of the namespace itself.
	Platform, Own Set
	// Canaries is true if some of the platform's bundles are canaries.
	Canaries bool
}

// ByNamespace returns the deciding bundles for each of NamespacesWithBundles.
func (s Set) ByNamespace() map[string]Part {
	platform := s.filterBundles(func(b *Bundle) bool { return b.Kind != Tenant })
	everywhere := platform.DecidingIn("")
	out := map[string]Part{}
	for _, b := range platform {
		for _, ns := range b.Canary {
			if _, done := out[ns]; !done {
				out[ns] = Part{Platform: platform.DecidingIn(ns), Canaries: true}
			}
		}
	}
	for _, b := range s {
		if b.Kind != Tenant {
			continue
		}
		part, ok := out[b.Namespace]
		if !ok {
			part.Platform = everywhere
		}
		part.Own = append(part.Own, b)
		out[b.Namespace] = part
	}
	return out
}

// OwnedBy returns the bundles of a namespace itself; for "", the bundles of the platform for every
// namespace, without canaries.
func (s Set) OwnedBy(namespace string) Set {
	return s.filterBundles(func(b *Bundle) bool { return b.isOwnedBy(namespace) })
}

// WithoutWithheld returns the set without withheld bundles.
func (s Set) WithoutWithheld() Set {
	return s.filterBundles(func(b *Bundle) bool { return !b.Withheld })
}

// WithheldBundles returns the withheld bundles of the set.
func (s Set) WithheldBundles() Set {
	return s.filterBundles(func(b *Bundle) bool { return b.Withheld })
}

// CanariesIn returns the canaries that decide in a namespace.
func (s Set) CanariesIn(namespace string) Set {
	return s.filterBundles(func(b *Bundle) bool { return b.canaryIn(namespace) })
}

func (s Set) filterBundles(keep func(*Bundle) bool) (out Set) {
	for _, b := range s {
		if keep(b) {
			out = append(out, b)
		}
	}
	return out
}

func (b *Bundle) isOwnedBy(namespace string) bool { return b.Namespace == namespace && b.Canary == nil }

func (b *Bundle) canaryIn(namespace string) bool {
	_, ok := slices.BinarySearch(b.Canary, namespace)
	return ok
}

// NamespacesWithBundles returns the namespaces that have bundles of their own, or canaries.
func (s Set) NamespacesWithBundles() []string {
	seen := map[string]bool{}
	for _, b := range s {
		if b.Kind == Tenant {
			seen[b.Namespace] = true
		}
		for _, ns := range b.Canary {
			seen[ns] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// IDs returns the IDs of the bundles, sorted.
func (s Set) IDs() []string {
	out := make([]string, len(s))
	for i, b := range s {
		out[i] = b.ID()
	}
	slices.Sort(out)
	return out
}

// Revision is a hash of the bundles in the set and where they decide. It does not depend on their
// order.
func (s Set) Revision() string {
	lines := make([]string, len(s))
	for i, b := range s {
		lines[i] = b.idWithState()
		if b.Canary != nil {
			lines[i] += " canary " + strings.Join(b.Canary, ",")
		}
	}
	return hashLines(lines)
}

// ContentHash is like Revision, but without the namespaces of canaries: for a namespace it stays the
// same when a canary gets further namespaces, and when it is promoted.
func (s Set) ContentHash() string {
	lines := make([]string, len(s))
	for i, b := range s {
		lines[i] = b.idWithState()
	}
	return hashLines(lines)
}

// idWithState is the ID of a bundle, with a mark if it is withheld.
func (b *Bundle) idWithState() string {
	if b.Withheld {
		return b.ID() + " withheld"
	}
	return b.ID()
}

func hashLines(lines []string) string {
	slices.Sort(lines)
	h := sha256.New()
	for _, line := range lines {
		_, _ = io.WriteString(h, line+"\n") // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))
}

// claim is a package of a bundle, or a path of its data in the form of a package.
type claim struct {
	bundle *Bundle
	path   string
	at     *ast.Location
	data   bool
}

// claimedPaths returns the claims of a bundle, each path once.
func (b *Bundle) claimedPaths() (out []claim) {
	seen := map[string]bool{}
	add := func(c claim) {
		if !seen[c.path] {
			seen[c.path] = true
			out = append(out, c)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
		m := b.Modules[file]
		add(claim{b, module.PackagePath(m), m.Package.Location, false})
	}
	for _, file := range slices.Sorted(maps.Keys(b.documents)) {
		for _, steps := range leafPaths(b.documents[file]) {
			add(claim{b, strings.Join(steps[:min(3, len(steps))], "."), &ast.Location{File: file, Row: 1, Col: 1}, true})
		}
	}
	return out
}

// CheckConflicts finds packages that two bundles of the set claim and that would be active together.
// Without this check, two complete rules of one name would only conflict when they are evaluated.
// Platform bundles may have data below each other's packages. Data of a tenant may not be there, nor
// the other way round, since the rules of one would read the data of the other.
func (s Set) CheckConflicts() error {
	var out module.Problems
	// The claims of a path, by namespace: bundles of different tenants are never active together, and
	// there may be a thousand.
	owners := map[string]map[string][]claim{}
	for _, b := range s {
		for _, c := range b.claimedPaths() {
			others := owners[c.path]
			if others == nil {
				others = map[string][]claim{}
				owners[c.path] = others
			}
			look := []string{""}
			if b.Kind != Tenant {
				look = slices.Sorted(maps.Keys(others))
			} else if b.Namespace != "" {
				look = append(look, b.Namespace)
			}
			for _, ns := range look {
				for _, o := range others[ns] {
					tenants := b.Kind == Tenant || o.bundle.Kind == Tenant
					if (tenants || !c.data && !o.data) && s.areActiveTogether(o.bundle, b) {
						out = append(out, module.ProblemAt(c.at, "package %s of bundle %s belongs to bundle %s already", c.path, b.Name, o.bundle.Name).WithCode("conflict_error"))
					}
				}
			}
			others[b.Namespace] = append(others[b.Namespace], c)
		}
	}
	if len(out) == 0 {
		return nil
	}
	slices.SortFunc(out, func(a, b module.Problem) int { return strings.Compare(a.String(), b.String()) })
	return fmt.Errorf("putting bundles together: %w", out)
}

// areActiveTogether reports whether both are active in some namespace.
func (s Set) areActiveTogether(a, b *Bundle) bool {
	if b.Kind == Tenant || b.Canary != nil && a.Kind != Tenant {
		a, b = b, a // a tenant's bundle first, then canaries
	}
	switch {
	case a.Kind == Tenant:
		here := s.DecidingIn(a.Namespace)
		return slices.Contains(here, a) && slices.Contains(here, b)
	case a.Canary != nil:
		return slices.ContainsFunc(a.Canary, func(ns string) bool { return slices.Contains(s.DecidingIn(ns), b) })
	}
	return true
}
