// Package policybundle makes the policies of ClusterPolicyBundles active: each
// goes through the engine's gate, and the last good one stays when the newest
// is refused.
package policybundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Library is the users' bundles that decide in this process.
type Library struct {
	engine  *engine.Engine
	gate    *gate.Gate
	records func() []decision.Record

	clock func() time.Time

	mu     sync.Mutex // one bundle goes through the gate at a time
	active map[string]*bundle.Bundle
	// gone are those that were taken out and not told yet.
	gone []string
	// refused remembers what was refused beside which others, so that looking
	// again costs nothing while neither changes.
	refused map[string]verdict
	// disk has what is active, onDisk is what was written there.
	disk   *Disk
	onDisk bundle.Set
}

type verdict struct {
	files   map[string]string
	beside  string
	until   time.Time // zero if it holds while nothing changes
	refusal error
}

// limitsHold is how long a bundle counts as too slow or too large to be
// checked: the machine may have been busy.
const limitsHold = 10 * time.Minute

// NewLibrary makes an empty Library. records are recent decisions that a new
// bundle makes again before it is let in; it may be nil.
func NewLibrary(e *engine.Engine, g *gate.Gate, records func() []decision.Record) *Library {
	if records == nil {
		records = func() []decision.Record { return nil }
	}
	return &Library{engine: e, gate: g, records: records, clock: time.Now, active: map[string]*bundle.Bundle{}, refused: map[string]verdict{}}
}

// Admit makes a bundle active in place of the one of its name. The error is a
// *Refusal when the bundle is to blame; what was active stays then.
func (l *Library) Admit(ctx context.Context, name string, files map[string]string) (revision string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.keep()
	l.follow()
	beside := l.set(name).Revision()
	if v, ok := l.refused[name]; ok && v.beside == beside && maps.Equal(v.files, files) && (v.until.IsZero() || l.clock().Before(v.until)) {
		return "", v.refusal
	}
	revision, err = l.admit(ctx, name, files)
	delete(l.refused, name)
	var refused *Refusal
	if errors.As(err, &refused) {
		v := verdict{files: files, beside: beside, refusal: err}
		if refused.passing {
			v.until = l.clock().Add(limitsHold)
		}
		l.refused[name] = v
	}
	return revision, err
}

func (l *Library) admit(ctx context.Context, name string, files map[string]string) (string, error) {
	b, err := bundle.FromFiles(name, files)
	if err != nil {
		return "", refusal(err)
	}
	// Tests are no part of the revision, but other tests may fail.
	if old := l.active[name]; old != nil && maps.Equal(old.Files, b.Files) {
		return b.Revision, nil
	}
	// Its recent decisions would be late in the gate too, which is not the news.
	if err := l.engine.Banned(append(l.set(name), b)); err != nil {
		return "", refusal(err)
	}
	_, err = l.gate.Admit(ctx, b, l.set(""), l.records())
	if ctx.Err() != nil { // the gate takes our own end for one that took too long
		return "", fmt.Errorf("admitting bundle %s: %w", name, ctx.Err())
	}
	if err != nil {
		return "", refusal(err)
	}
	l.follow() // the engine may have rolled back while the gate was at work
	if err := l.engine.Activate(ctx, append(l.set(name), b)); err != nil {
		return "", refusal(err)
	}
	l.active[name] = b
	return b.Revision, nil
}

// Remove takes a bundle out.
func (l *Library) Remove(ctx context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.keep()
	delete(l.refused, name)
	l.follow()
	if l.active[name] == nil {
		return nil
	}
	rest := l.set(name)
	if err := l.engine.Activate(ctx, rest); err != nil {
		// What is deleted must go though the rest was rolled back as it is.
		if rest, err = l.activateLess(ctx, rest, err); err != nil {
			return fmt.Errorf("removing bundle %s: %w", name, err)
		}
	}
	for _, b := range l.set(name) {
		if !slices.Contains(rest, b) {
			l.gone = append(l.gone, b.Name)
			delete(l.active, b.Name)
		}
	}
	delete(l.active, name)
	return nil
}

// activateLess activates a set that was rolled back, with as little left out as
// makes it another one.
func (l *Library) activateLess(ctx context.Context, set bundle.Set, err error) (bundle.Set, error) {
	for i := len(set) - 1; i >= 0 && errors.As(err, &engine.RolledBackError{}); i-- {
		less := slices.Delete(slices.Clone(set), i, i+1)
		if err = l.engine.Activate(ctx, less); err == nil {
			return less, nil
		}
	}
	return nil, err
}

// Files are the files of a bundle that decide, nil if none do.
func (l *Library) Files(name string) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow()
	if b := l.active[name]; b != nil {
		return maps.Clone(b.Files)
	}
	return nil
}

// Active is the revision of a bundle that decides, "" if none does.
func (l *Library) Active(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow()
	if b := l.active[name]; b != nil {
		return b.Revision
	}
	return ""
}

// Gone names the bundles that were taken out for the sake of others, or that
// the engine rolled back, since it was asked last.
func (l *Library) Gone() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow()
	l.keep()
	gone := slices.Compact(slices.Sorted(slices.Values(l.gone)))
	l.gone = nil
	return gone
}

// follow notes that the engine goes on with other bundles than were activated.
func (l *Library) follow() {
	decides := map[string]*bundle.Bundle{}
	for _, b := range l.engine.Snapshot().Bundles() {
		decides[b.Name] = b
	}
	for name, b := range l.active {
		if d := decides[name]; d == nil || d.Revision != b.Revision {
			l.gone = append(l.gone, name)
		}
	}
	for name, b := range decides {
		if old := l.active[name]; old != nil && old.Revision == b.Revision {
			decides[name] = old // with the newest tests
		}
	}
	l.active = decides
}

// set is all active bundles but the one of a name.
func (l *Library) set(without string) bundle.Set {
	out := bundle.Set{}
	for name, b := range l.active {
		if name != without {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b *bundle.Bundle) int { return strings.Compare(a.Name, b.Name) })
	return out
}
