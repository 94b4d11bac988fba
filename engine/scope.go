// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// scope has the bundles that decide in some namespaces: bundles of the platform, which are compiled, and, for one
// namespace, its own bundles. The own bundles are compiled once a decision needs them, with the part of the platform's
// bundles that refers to them.
type scope struct {
	revision string
	bundles  []string
	platform *compiledView
	// tenant is the namespace whose own bundles are in own; empty, and without any, elsewhere.
	tenant string
	own    bundle.Set
	// parts caches for points whether the own bundles take part in them.
	parts sync.Map // of decision.Name to bool
	// affected returns the rules of the platform that the own bundles take part in. It is computed when it is
	// needed.
	affected func() map[*ast.Rule]bool
	// checked is true once the own bundles are known to compile with the platform's, or failure says why they do not.
	checked atomic.Bool
	failure atomic.Pointer[error]
	// again is when they are compiled again after a panic of the compiler, which does not show that they are invalid; nil
	// if there was none.
	again atomic.Pointer[time.Time]
	told  atomic.Bool // whether it was reported that it does not compile
}

// newScope makes the scope of a namespace, or of all namespaces without bundles of their own.
func newScope(platform *compiledView, bundles, own bundle.Set) *scope {
	s := &scope{revision: bundles.ContentHash(), bundles: bundles.IDs(), platform: platform, own: own}
	if len(own) == 0 {
		s.checked.Store(true)
		return s
	}
	s.tenant = own[0].Namespace
	s.affected = sync.OnceValue(func() map[*ast.Rule]bool { return platform.references().affectedBy(own) })
	return s
}

// withoutOwn returns the scope in which only the bundles of the platform decide.
func (s *scope) withoutOwn() *scope {
	own := s.own.IDs()
	out := &scope{platform: s.platform, revision: s.platform.revision}
	out.bundles = slices.DeleteFunc(slices.Clone(s.bundles), func(id string) bool { return slices.Contains(own, id) })
	out.checked.Store(true)
	return out
}

// takesPart reports whether the own bundles may change the answer of a point. If not, the platform's bundles alone
// give the same answer.
func (s *scope) takesPart(name decision.Name) bool {
	if len(s.own) == 0 {
		return false
	}
	if known, ok := s.parts.Load(name); ok {
		return known.(bool)
	}
	part := s.findPart(name)
	s.parts.Store(name, part)
	return part
}

func (s *scope) findPart(name decision.Name) bool {
	if override, plain := entryRefs(name); s.mayDefinePath(override) || s.mayDefinePath(plain) {
		return true
	}
	affected := s.affected()
	_, _, rules := s.platform.findEntrypoint(name)
	for _, r := range rules {
		if affected[r] {
			return true
		}
	}
	return false
}

// mayDefinePath reports whether a rule of the own bundles may define something at a path.
func (s *scope) mayDefinePath(path ast.Ref) bool {
	for _, b := range s.own {
		for _, m := range b.Modules {
			for _, r := range m.Rules {
				if mayMeet(m.Package.Path.Extend(r.Head.Ref()), path) {
					return true
				}
			}
		}
	}
	return false
}

// isPointExtended reports whether rules of users take part in the answer to a point.
func (s *scope) isPointExtended(name decision.Name) bool {
	if s.takesPart(name) {
		return true
	}
	q, err := s.platform.preparedQuery(context.Background(), name)
	return err != nil || q.extended
}

// isPointReplaced reports whether a bundle of users answers a point itself.
func (s *scope) isPointReplaced(name decision.Name) bool {
	override, _ := entryRefs(name)
	return s.mayDefinePath(override) || s.platform.isPointReplaced(name)
}

// dependsOnUsers reports whether the answer to a point may depend on rules of users: they extend the built-in policies, answer
// in their place, or answer a point that has no built-in policy.
func (s *scope) dependsOnUsers(name decision.Name) bool {
	return s.isPointExtended(name) || s.isPointReplaced(name)
}

// isPointDefined reports whether a policy answers a point. It is true if that is not known.
func (s *scope) isPointDefined(name decision.Name) bool {
	if s.takesPart(name) {
		return true
	}
	q, err := s.platform.preparedQuery(context.Background(), name)
	return err != nil || q.defined
}

// buildView compiles the own bundles with the part of the platform's that refers to them, and prepares those of the points
// that they take part in. It makes no view of more than most bytes.
func (s *scope) buildView(ctx context.Context, points []decision.Name, most int) (*compiledView, error) {
	modules, bytes := s.viewModules()
	if bytes > most {
		return nil, fmt.Errorf("compiled, they would take about %d KiB of memory, and may take %d: make them smaller, their data above all, or give the process more memory", bytes>>10, most>>10)
	}
	data := s.platform.data
	for _, b := range s.own {
		var err error
		if data, err = addData(data, b); err != nil {
			return nil, err
		}
	}
	v, err := compileView(ctx, s.revision, modules, data)
	if err != nil {
		return nil, err
	}
	v.tenant, v.rules, v.bytes = s.tenant, rulesOf(s.own, v.compiler), bytes
	v.withheld = slices.Concat(s.platform.withheld, s.own.WithheldBundles())
	for _, p := range points {
		if !s.takesPart(p) {
			continue
		}
		if _, err := v.preparedQuery(ctx, p); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// viewModules returns the modules of a view of the scope, and an estimate of the heap that the view takes, in
// bytes.
func (s *scope) viewModules() (out map[string]*ast.Module, bytes int) {
	needed := s.platform.references().modulesFor(s.affected())
	out = map[string]*ast.Module{}
	whole := slices.ContainsFunc(s.own, func(b *bundle.Bundle) bool { return !extendsAlone(b) })
	for key, m := range s.platform.modules {
		if whole || needed[key] {
			out[key] = m
			bytes += compiledBytes * s.platform.sizes[key]
		}
	}
	for _, b := range s.own {
		for file, m := range b.Modules {
			out[moduleKey(b, file)] = m
		}
		bytes += b.HeapBytes()
	}
	return out, bytes
}

// extendsAlone reports whether a bundle only extends the platform's, and refers to nothing else. CheckContract refuses
// other bundles of a namespace.
func extendsAlone(b *bundle.Bundle) bool {
	for _, m := range b.Modules {
		if root, ok := m.Package.Path[1].Value.(ast.String); !ok || root != "extend" {
			return false
		}
	}
	for root := range b.Data {
		if root != "extend" {
			return false
		}
	}
	return !b.RefersOutside()
}

// recordOutcome records whether the own bundles compile.
func (s *scope) recordOutcome(err error) {
	s.again.Store(nil)
	if errors.As(err, new(*recovery.Panic)) {
		at := time.Now().Add(sparedAgain)
		s.again.Store(&at)
	}
	if err == nil {
		s.failure.Store(nil)
	} else {
		err = UnfitError{Namespace: s.tenant, Err: err}
		s.failure.Store(&err)
	}
	s.checked.Store(true)
}

// forgetFailure drops the error of the own bundles, so that they are compiled again.
func (s *scope) forgetFailure() {
	if s.failure.Swap(nil) != nil {
		s.told.Store(false)
		s.checked.Store(false)
	}
}

// compileFailure returns why the own bundles do not compile; nil if they do, or if that is not known yet.
func (s *scope) compileFailure() error {
	err := s.failure.Load()
	if err == nil {
		return nil
	}
	if at := s.again.Load(); at != nil && time.Now().After(*at) {
		s.forgetFailure()
		return nil
	}
	return *err
}
