// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/faults/retry"
	"github.com/regatta-sh/regatta/test/faults/versions"
)

// known are the newest versions of SidecarSets that the API server has answered with.
type known struct {
	mu      sync.Mutex
	newest  map[string]int64
	answers map[string][]answer
}

// answer is that a version was stored, at the latest by then.
type answer struct {
	revision int64
	at       time.Time
}

func newKnown() *known { return &known{newest: map[string]int64{}, answers: map[string][]answer{}} }

func (k *known) add(set *kruise.SidecarSet) error {
	revision, err := versions.Of(set)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.newest[set.Name] = max(k.newest[set.Name], revision)
	k.answers[set.Name] = append(k.answers[set.Name], answer{revision, time.Now()})
	return nil
}

// now are the newest of all SidecarSets.
func (k *known) now() map[string]int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.newest)
}

// updater changes SidecarSets while pods are made.
type updater struct {
	c       client.Client
	known   *known
	every   time.Duration
	random  *rand.Rand
	current []content
	there   []bool
	// Changes counts what was done.
	changes int
}

// newUpdater makes the SidecarSets, and waits until each has a revision.
func newUpdater(ctx context.Context, c client.Client, k *known, groups int, every time.Duration, seed uint64) (*updater, error) {
	u := &updater{c: c, known: k, every: every, random: rand.New(rand.NewPCG(seed, 1))}
	for group := range groups {
		for f := range forms {
			u.current, u.there = append(u.current, content{form: f, group: group}), append(u.there, true)
		}
	}
	for _, one := range u.current {
		if err := u.write(ctx, one, true); err != nil {
			return nil, err
		}
	}
	for _, one := range u.current {
		for set := one.set(); set.Status.LatestRevision == ""; {
			if err := c.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
				return nil, fmt.Errorf("reading SidecarSet %s: %w", set.Name, err)
			}
			if err := retry.Pause(ctx, 100*time.Millisecond); err != nil {
				return nil, fmt.Errorf("waiting for the first revision of SidecarSet %s: %w", set.Name, err)
			}
		}
	}
	return u, nil
}

// run changes one SidecarSet after the other, until ctx is done.
func (u *updater) run(ctx context.Context) error {
	for retry.Pause(ctx, u.every) == nil {
		if err := u.change(context.WithoutCancel(ctx), u.random.IntN(len(u.current))); err != nil {
			return err
		}
		u.changes++
	}
	return nil
}

// change makes the next version of a SidecarSet.
func (u *updater) change(ctx context.Context, at int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	next := u.current[at]
	next.number++
	if u.random.IntN(4) == 0 && next.form != mesh {
		next.shape++
	}
	create := false
	switch {
	case next.form != passing:
	case !u.there[at]:
		create, next.less = true, false
	case !next.less:
		next.less = true
	default:
		u.there[at] = false
		return u.remove(ctx, next)
	}
	u.current[at], u.there[at] = next, true
	return u.write(ctx, next, create)
}

// write stores a version, however often it takes while managers are killed.
func (u *updater) write(ctx context.Context, c content, create bool) error {
	for {
		set := c.set()
		var err error
		if create {
			err = u.c.Create(ctx, set)
		} else if err = u.c.Get(ctx, client.ObjectKeyFromObject(set), set); err == nil {
			set.Spec = c.spec()
			err = u.c.Update(ctx, set)
		}
		switch {
		case err == nil:
			return u.known.add(set)
		case create && apierrors.IsAlreadyExists(err): // only the answer was lost
			create = false
		case !retry.Again(err):
			return fmt.Errorf("writing SidecarSet %s: %w", set.Name, err)
		}
		if err := retry.Pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("writing SidecarSet %s: %w", set.Name, err)
		}
	}
}

func (u *updater) remove(ctx context.Context, c content) error {
	for {
		err := client.IgnoreNotFound(u.c.Delete(ctx, c.set()))
		if err == nil {
			return nil
		}
		if !retry.Again(err) {
			return fmt.Errorf("deleting SidecarSet %s: %w", c.name(), err)
		}
		if err := retry.Pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("deleting SidecarSet %s: %w", c.name(), err)
		}
	}
}
