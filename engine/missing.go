// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
)

// Missing is a bundle that should decide but cannot, because it could not be loaded or is not trusted.
// It is not known what it would hold or refuse, so the answers of the points that it takes part in are
// strict fallbacks.
type Missing struct {
	// Bundle is the name of the bundle; for a tenant's bundle NAMESPACE/NAME.
	Bundle string
	// Namespaces are the namespaces in which it should decide; nil for all, and for cluster-scoped
	// objects.
	Namespaces []string
	// Points are the points that it takes part in, and the rules that a StrictWhere of a point names; nil
	// for all.
	Points []decision.Name
	// Spares, if it is set, reports whether a subject is decided without the bundle.
	Spares func(decision.Subject) bool
	// Reason is why the bundle is missing, as a part of a sentence.
	Reason string
}

// takesPart reports whether the bundle would take part in the answer of a point, or
// of a rule, to a subject.
func (m Missing) takesPart(name decision.Name, subject decision.Subject) bool {
	return m.decidesAbout(subject) && (m.Points == nil || slices.Contains(m.Points, name))
}

func (m Missing) decidesAbout(subject decision.Subject) bool {
	return (m.Namespaces == nil || slices.Contains(m.Namespaces, subject.Namespace)) && (m.Spares == nil || !m.Spares(subject))
}

// Equal reports whether both have the same effect, for the same reason.
func (m Missing) Equal(o Missing) bool { return m.effectKey() == o.effectKey() && m.Reason == o.Reason }

// effectKey is equal for Missings with the same effect.
func (m Missing) effectKey() string {
	return fmt.Sprintf("missing %s %t %q %t %q", m.Bundle, m.Namespaces == nil, m.Namespaces, m.Points == nil, m.Points)
}

// CompileMissing is CompileBundles for a set in which some bundles are missing. CompileBundles uses
// the missing ones of the active snapshot.
func (e *Engine) CompileMissing(ctx context.Context, set bundle.Set, missing []Missing, others ...*Snapshot) (*Snapshot, error) {
	s, err := e.compileSnapshot(ctx, set, append(others, e.active.Load()))
	if err != nil {
		return nil, err
	}
	s.missing = slices.Clone(missing)
	s.revision = mixRevision(s.revision, s.missing)
	return s, nil
}

// mixRevision returns the revision of policies of which some are missing.
func mixRevision(revision string, missing []Missing) string {
	if len(missing) == 0 {
		return revision
	}
	lines := make([]string, len(missing))
	for i, m := range missing {
		lines[i] = m.effectKey()
	}
	slices.Sort(lines)
	h := sha256.New()
	_, _ = io.WriteString(h, revision+"\n"+strings.Join(lines, "\n")) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil))
}

// MissingBundles returns the bundles that should decide in the snapshot but cannot. Callers must not
// change them.
func (s *Snapshot) MissingBundles() []Missing {
	if s == nil {
		return nil
	}
	return s.missing
}

// missingIn finds a missing bundle because of which a point, or a rule, must not be answered for a
// subject.
func (s *Snapshot) missingIn(name decision.Name, subject decision.Subject) (Missing, bool) {
	for _, m := range s.missing {
		if m.takesPart(name, subject) {
			return m, true
		}
	}
	return Missing{}, false
}

// missingFor returns the bundles that should decide about a subject but cannot.
func (s *Snapshot) missingFor(subject decision.Subject) (out []Missing) {
	for _, m := range s.missing {
		if m.decidesAbout(subject) {
			out = append(out, m)
		}
	}
	return out
}

// NamespacesWithBundles returns the namespaces that have bundles of their own, or canaries, including
// missing ones.
func (s *Snapshot) NamespacesWithBundles() []string {
	seen := map[string]bool{}
	for _, ns := range s.set.NamespacesWithBundles() {
		seen[ns] = true
	}
	for _, m := range s.missing {
		for _, ns := range m.Namespaces {
			seen[ns] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// PointsOf returns the points that a bundle of the snapshot takes part in, in their order, and the
// rules that a StrictWhere of a point names. It is the value for Missing.Points if the bundle becomes
// missing.
func (s *Snapshot) PointsOf(b *bundle.Bundle) []decision.Name {
	out := []decision.Name{}
	takesPart := s.partOf(b)
	for _, p := range catalog.All() {
		if takesPart(p.Name) {
			out = append(out, p.Name)
		}
		if p.StrictWhere != "" && b.Kind != bundle.Tenant && (s.answeredBy(b, p.Name) || takesPart(p.StrictWhere)) {
			out = append(out, p.StrictWhere)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// partOf returns a function that reports whether a bundle of the snapshot takes part in the answer of
// a point or a rule, by its rules or by its data. It compiles nothing.
func (s *Snapshot) partOf(b *bundle.Bundle) func(decision.Name) bool {
	platform := s.scopeForSubject(standsFor(b)).platform
	if b.Kind == bundle.Tenant {
		return newScope(platform, bundle.Set{b}, bundle.Set{b}).takesPart
	}
	return func(name decision.Name) bool { return takesPart(b, platform.reachableRules(name)) }
}

// answeredBy reports whether a bundle of the platform has the rules that answer a point.
func (s *Snapshot) answeredBy(b *bundle.Bundle, name decision.Name) bool {
	_, _, rules := s.scopeForSubject(standsFor(b)).platform.findEntrypoint(name)
	return len(rules) > 0 && isOf(b, rules[0])
}

// standsFor returns an example of a subject that a bundle decides about.
func standsFor(b *bundle.Bundle) decision.Subject {
	if len(b.Canary) > 0 {
		return decision.Subject{Namespace: b.Canary[0]}
	}
	return decision.Subject{Namespace: b.Namespace}
}
