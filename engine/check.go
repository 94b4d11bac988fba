// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// DefaultTenantBytes bounds how many bytes of the heap the bundles of all namespaces take together, as
// bundle.Bundle.HeapBytes estimates it. 500 bundles of 2 KiB of Rego take about 52 MiB.
const DefaultTenantBytes = 64 << 20

// TooLargeError refuses a bundle of a namespace: with it the bundles of all namespaces would take too much memory.
type TooLargeError struct {
	// Bundle is the refused bundle, as name@revision; Bytes is how many bytes it takes.
	Bundle string
	Bytes  int
	// Together is how many bytes all would take, and Most how many they may take.
	Together, Most int
}

func (err TooLargeError) Error() string {
	return fmt.Sprintf("bundle %s takes about %d KiB of memory; with it the bundles of all namespaces would take %d KiB, and they may take %d KiB together: "+
		"make it smaller, its data above all, remove bundles of namespaces that are not needed, or give the process more memory",
		err.Bundle, err.Bytes>>10, err.Together>>10, err.Most>>10)
}

// UnfitError refuses the bundles of a namespace: they cannot decide with those of the platform until one of them changes.
type UnfitError struct {
	Namespace string
	Err       error
}

func (err UnfitError) Error() string {
	return fmt.Sprintf("the policies of namespace %s do not compile with those of the platform: %v", err.Namespace, err.Err)
}

func (err UnfitError) Unwrap() error { return err.Err }

// checkTenantBytes refuses a set in which the bundles of namespaces take more memory than allowed. Active bundles stay:
// it refuses only a set that has a bundle which the given snapshots do not have, and that takes more than these
// snapshots.
func (e *Engine) checkTenantBytes(set bundle.Set, from []*Snapshot) error {
	sum, largest := 0, (*bundle.Bundle)(nil)
	before, known := 0, map[string]bool{}
	for _, other := range from {
		if other == nil {
			continue
		}
		others := 0
		for _, b := range other.set {
			if b.Kind == bundle.Tenant {
				others += b.HeapBytes()
				known[b.ID()] = true
			}
		}
		before = max(before, others)
	}
	for _, b := range set {
		if b.Kind != bundle.Tenant {
			continue
		}
		sum += b.HeapBytes()
		if !known[b.ID()] && (largest == nil || b.HeapBytes() > largest.HeapBytes()) {
			largest = b
		}
	}
	if sum <= e.tenantBytes || sum <= before || largest == nil {
		return nil
	}
	return TooLargeError{Bundle: largest.ID(), Bytes: largest.HeapBytes(), Together: sum, Most: e.tenantBytes}
}

// checkInterval is how often the background compilation checks whether decisions wait for their policies. checkPatience is
// how long these decisions take precedence, since some decision may always wait.
const checkInterval, checkPatience = 10 * time.Millisecond, time.Second

// checkScopes compiles, one after the other and in the background, the bundles of namespaces that were active with
// other bundles of the platform. It uses a processor for at most a quarter of the time, and gives decisions precedence
// for a while.
func (e *Engine) checkScopes(s *Snapshot) {
	var namespaces []string
	for _, ns := range slices.Sorted(maps.Keys(s.scopes)) {
		in := s.scopes[ns]
		failure := in.compileFailure() // the result may have been dropped since
		if !in.checked.Load() || failure != nil && !in.told.Load() {
			namespaces = append(namespaces, ns)
		}
	}
	if len(namespaces) == 0 {
		return
	}
	recovery.Go("engine", func() {
		for _, ns := range namespaces {
			start := time.Now()
			err := e.views.checkScope(context.Background(), s.scopes[ns])
			took := time.Since(start)
			if e.active.Load() != s {
				return // scopes that have not changed are checked for the snapshot that is active now
			}
			if err != nil && s.scopes[ns].compileFailure() != nil {
				e.reportUnfit(s.scopes[ns], err)
			}
			rest := max(3*took, checkInterval)
			for polite := rest + checkPatience; rest > 0 || polite > 0 && e.views.waiting.Load() > 0; rest, polite = rest-checkInterval, polite-checkInterval {
				select {
				case <-time.After(checkInterval):
				case <-e.workers.quit:
					return
				}
			}
		}
	}, nil)
}

// reportUnfit reports once that a scope of the active snapshot does not compile.
func (e *Engine) reportUnfit(s *scope, err error) {
	if e.active.Load().scopes[s.tenant] == s && s.told.CompareAndSwap(false, true) {
		e.invalid(s.tenant, err)
	}
}

// NamespaceProblem returns why the bundles of a namespace cannot decide together with those of the platform; nil if they can,
// or if that is not known yet. While they cannot, decisions that they take part in are strict fallbacks.
func (s *Snapshot) NamespaceProblem(namespace string) error {
	if in := s.scopes[namespace]; in != nil {
		return in.compileFailure()
	}
	return nil
}
