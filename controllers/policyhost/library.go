// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/shadow"
)

// Stages is how a bundle takes part in decisions. Each part may be missing.
type Stages struct {
	// Enforced decides, except in the namespaces of Canary, where Canary decides.
	Enforced, Canary *bundle.Bundle
	// Withheld was rolled back, and nothing replaces it: decisions that it takes part in get the strictest
	// answer.
	Withheld *bundle.Bundle
	// Shadow is evaluated in addition to the bundles that decide.
	Shadow *bundle.Bundle
	// Missing are the revisions that should decide, as Enforced or as Canary, but cannot.
	Missing []engine.Missing
}

// library is the users' bundles that decide in this process.
type library struct {
	engine  *engine.Engine
	shadows *shadow.Runner
	// before, if set, is called before a snapshot with another bundle becomes active.
	before func(ctx context.Context, next *engine.Snapshot) error

	mu     sync.Mutex
	stands map[Key]Stages
	// gone are the bundles that were removed, and not reported yet.
	gone []Key
	// live is the snapshot that shadows are compared with, candidates are the snapshots with each shadow.
	live       *engine.Snapshot
	candidates map[Key]*engine.Snapshot
	// marks has the marks of bundles that are about to be loaded; nil without a disk.
	marks *marks
	// disk stores the active bundles, onDisk is the revision that was written last.
	disk   *disk
	onDisk string
}

// newLibrary makes an empty library. Without shadows nothing is compared.
func newLibrary(e *engine.Engine, shadows *shadow.Runner) *library {
	return &library{engine: e, shadows: shadows, stands: map[Key]Stages{}}
}

// PutStages makes a bundle take part as given from now on. After an error the earlier stages stay. The
// error is engine.RolledBackError if this bundle was rolled back, or module.Problems if bundles
// conflict.
func (l *library) PutStages(ctx context.Context, key Key, s Stages) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.saveToDisk()
	var stands map[Key]Stages
	var out []Key
	err := l.retryActivation(s.decidingBundles(), func() error {
		set, left := l.composeSet(key, s)
		stands, out = maps.Clone(l.stands), left
		for _, k := range left {
			stands[k] = Stages{Missing: missingForPlatform(k, key)}
		}
		stands[key] = s
		return l.activateSet(ctx, set, allMissing(stands))
	})
	if err != nil {
		return errors.Join(fmt.Errorf("enforcing bundle %s: %w", key, err), l.refreshShadows(ctx, key))
	}
	for _, k := range append(out, key) {
		tellMissing(k, l.stands[k], stands[k])
	}
	l.stands, l.gone = stands, append(l.gone, out...)
	return l.updateShadows(ctx, key)
}

// mostRaces is how often in a row the engine may roll back another bundle while a set is
// made active.
const mostRaces = 5

// retryActivation activates a set of bundles. If the engine has rolled back another bundle of the set
// a moment ago, the set is composed again without that revision, since this is no error of the bundle
// that is put or removed.
func (l *library) retryActivation(own bundle.Set, activate func() error) (err error) {
	for range mostRaces {
		l.syncWithEngine()
		var refused engine.RolledBackError
		if err = activate(); !errors.As(err, &refused) || isOf(own, refused) {
			return err
		}
	}
	return fmt.Errorf("other policy bundles were rolled back meanwhile, so this is tried again: %s", err.Error())
}

// isOf reports whether an activation was refused because one of these bundles was rolled back.
func isOf(own bundle.Set, refused engine.RolledBackError) bool {
	return slices.ContainsFunc(own.WithoutWithheld().IDs(), func(id string) bool { return slices.Contains(refused.Bundles, id) })
}

// activateSet compiles a set, and makes it active.
func (l *library) activateSet(ctx context.Context, set bundle.Set, missing []engine.Missing) error {
	if err := l.engine.CheckRolledBack(set); err != nil {
		return err // checked first, so that a refused set is not compiled at each reconcile
	}
	next, err := l.engine.CompileMissing(ctx, set, missing)
	if err != nil {
		return fmt.Errorf("activating bundles: %w", err)
	}
	if l.before != nil {
		if err := l.before(ctx, next); err != nil {
			return err
		}
	}
	return l.engine.Swap(next)
}

// composeSet returns the set of bundles with new stages of one bundle. A bundle of the platform
// displaces those of tenants: a tenant must not block it with a package of the same name. out are the
// tenants' bundles that are left out, and are missing from then on.
func (l *library) composeSet(key Key, s Stages) (set bundle.Set, out []Key) {
	stands := maps.Clone(l.stands)
	stands[key] = s
	var tenants []Key
	for _, k := range slices.SortedFunc(maps.Keys(stands), compareKeys) {
		if k.Namespace != "" && key.Namespace == "" {
			tenants = append(tenants, k)
			continue
		}
		set = append(set, stands[k].decidingBundles()...)
	}
	platform, sound := set, set.CheckConflicts() == nil
	for _, k := range tenants {
		mine := stands[k].decidingBundles()
		if sound && append(slices.Clone(platform), mine...).CheckConflicts() != nil {
			out = append(out, k)
			continue
		}
		set = append(set, mine...)
	}
	return set, out
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// decidingBundles returns the bundles that decide somewhere, or are withheld.
func (s Stages) decidingBundles() bundle.Set {
	var out bundle.Set
	for _, b := range []*bundle.Bundle{s.Enforced, s.Canary, s.Withheld} {
		if b != nil {
			out = append(out, b)
		}
	}
	return out
}

// RemoveBundle removes a bundle.
func (l *library) RemoveBundle(ctx context.Context, key Key) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.saveToDisk()
	l.syncWithEngine()
	s, there := l.stands[key]
	if len(s.decidingBundles()) > 0 || len(s.Missing) > 0 {
		err := l.retryActivation(nil, func() error {
			stands := maps.Clone(l.stands)
			delete(stands, key)
			return l.activateAtOnce(ctx, allBut(l.stands, key), allMissing(stands))
		})
		if err != nil {
			return fmt.Errorf("removing bundle %s: %w", key, err)
		}
	}
	// A bundle of this name that is created later may decide, even with the content that was rolled back.
	l.engine.ForgetBundle(key.Namespace, key.Name)
	if !there {
		return nil
	}
	delete(l.stands, key)
	return l.updateShadows(ctx, key)
}

// activateAtOnce makes a set without new bundles active.
func (l *library) activateAtOnce(ctx context.Context, set bundle.Set, missing []engine.Missing) error {
	next, err := l.engine.CompileMissing(ctx, set, missing)
	if err != nil {
		return fmt.Errorf("activating bundles: %w", err)
	}
	return l.engine.Swap(next)
}

// BundleStages returns the current stages of a bundle; zero if it has none.
func (l *library) BundleStages(key Key) Stages {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncWithEngine()
	return l.stands[key]
}

// BundleKeys returns the keys of the bundles that have stages.
func (l *library) BundleKeys() []Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncWithEngine()
	return slices.SortedFunc(maps.Keys(l.stands), compareKeys)
}

// missingKeys returns the keys of the bundles that should decide but cannot.
func (l *library) missingKeys() (out []Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, s := range l.stands {
		if len(s.Missing) > 0 {
			out = append(out, k)
		}
	}
	return out
}

// PeerBundles returns the bundles that a bundle would decide with: all bundles of the platform, and
// those of its own namespace. A bundle of the platform is not checked with those of tenants, since it
// displaces them.
func (l *library) PeerBundles(key Key) bundle.Set {
	return l.selectPeers(key, func(s Stages) *bundle.Bundle { return s.Enforced })
}

// WithheldBeside returns those of the peers that are withheld.
func (l *library) WithheldBeside(key Key) bundle.Set {
	return l.selectPeers(key, func(s Stages) *bundle.Bundle { return s.Withheld })
}

func (l *library) selectPeers(key Key, part func(Stages) *bundle.Bundle) (out bundle.Set) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncWithEngine()
	for _, k := range slices.SortedFunc(maps.Keys(l.stands), compareKeys) {
		if b := part(l.stands[k]); k != key && b != nil && (k.Namespace == "" || k.Namespace == key.Namespace) {
			out = append(out, b)
		}
	}
	return out
}

// DrainRemoved returns the bundles that others displaced, or that the engine rolled back, since its
// last call.
func (l *library) DrainRemoved() []Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncWithEngine()
	l.saveToDisk()
	slices.SortFunc(l.gone, compareKeys)
	gone := slices.Compact(l.gone)
	l.gone = nil
	return gone
}

// syncWithEngine updates the stages if the engine decides by other bundles than were activated, such as after a
// rollback.
func (l *library) syncWithEngine() {
	decides := map[Key]Stages{}
	for _, b := range l.engine.ActiveSnapshot().UserBundles() {
		placeBundle(decides, b)
	}
	for k, was := range l.stands {
		s, there := decides[k]
		if !bundlesMatch(was.Enforced, s.Enforced) || !bundlesMatch(was.Canary, s.Canary) || !bundlesMatch(was.Withheld, s.Withheld) {
			l.gone = append(l.gone, k)
		} else {
			s = was // was has the newest tests
		}
		s.Missing = was.Missing
		if s.Shadow = was.Shadow; there || s.Shadow != nil || len(s.Missing) > 0 || len(was.decidingBundles()) == 0 {
			decides[k] = s
		}
	}
	l.stands = decides
}

// placeBundle puts a bundle into the stage that it is in.
func placeBundle(stands map[Key]Stages, b *bundle.Bundle) {
	k := Key{Namespace: b.Namespace, Name: b.Name}
	s := stands[k]
	switch {
	case b.Withheld:
		s.Withheld = b
	case len(b.Canary) > 0:
		s.Canary = b
	default:
		s.Enforced = b
	}
	stands[k] = s
}

func bundlesMatch(a, b *bundle.Bundle) bool {
	return a == b || a != nil && b != nil && a.Revision == b.Revision && slices.Equal(a.Canary, b.Canary)
}

// allBut returns all deciding bundles except those of a key.
func allBut(stands map[Key]Stages, without Key) bundle.Set {
	out := bundle.Set{}
	for _, k := range slices.SortedFunc(maps.Keys(stands), compareKeys) {
		if k != without {
			out = append(out, stands[k].decidingBundles()...)
		}
	}
	return out
}
