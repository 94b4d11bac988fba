package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/regatta-sh/regatta/engine/module"
)

// Set is every user's bundle that is active at the same time.
type Set []*Bundle

// For is the part of the set that decides in a namespace: all that platform
// engineers wrote, and what the namespace's own people wrote.
func (s Set) For(namespace string) Set {
	var out Set
	for _, b := range s {
		if b.Kind != Tenant || b.Namespace == namespace {
			out = append(out, b)
		}
	}
	return out
}

// Of is what a namespace's own people wrote; of "", what platform engineers did.
func (s Set) Of(namespace string) Set {
	var out Set
	for _, b := range s {
		if b.Namespace == namespace {
			out = append(out, b)
		}
	}
	return out
}

// Without is the set but for what Of has.
func (s Set) Without(namespace string) Set {
	var out Set
	for _, b := range s {
		if b.Namespace != namespace {
			out = append(out, b)
		}
	}
	return out
}

// Namespaces are those that have a bundle of their own.
func (s Set) Namespaces() []string {
	var out []string
	for _, b := range s {
		if b.Kind == Tenant && !slices.Contains(out, b.Namespace) {
			out = append(out, b.Namespace)
		}
	}
	slices.Sort(out)
	return out
}

// IDs names the bundles, in an order.
func (s Set) IDs() []string {
	out := make([]string, len(s))
	for i, b := range s {
		out[i] = b.ID()
	}
	slices.Sort(out)
	return out
}

// Revision is a hash of what is in the set, whatever the order.
func (s Set) Revision() string {
	h := sha256.New()
	for _, id := range s.IDs() {
		_, _ = io.WriteString(h, id+"\n") // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// Conflicts finds packages and files that two bundles of the set claim where
// both would be active. Two complete rules of one name would only disagree
// when they are evaluated.
func (s Set) Conflicts() error {
	var out module.Problems
	type owner struct{ bundle, namespace string }
	owners := map[string][]owner{}
	for _, b := range s {
		seen := map[string]bool{}
		for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
			m := b.Modules[file]
			path := module.PackagePath(m)
			if seen[path] {
				continue
			}
			seen[path] = true
			for _, o := range owners[path] {
				if o.namespace == "" || b.Namespace == "" || o.namespace == b.Namespace {
					out = append(out, module.At(m.Package.Location, "package %s of bundle %s belongs to bundle %s already", path, b.Name, o.bundle))
				}
			}
			owners[path] = append(owners[path], owner{b.Name, b.Namespace})
		}
	}
	if len(out) == 0 {
		return nil
	}
	slices.SortFunc(out, func(a, b module.Problem) int { return strings.Compare(a.String(), b.String()) })
	return fmt.Errorf("putting bundles together: %w", out)
}
