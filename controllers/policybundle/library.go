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

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// Library is the users' bundles that decide in this process.
type Library struct {
	engine  *engine.Engine
	gate    *gate.Gate
	records func() []decision.Record

	mu     sync.Mutex // one bundle goes through the gate at a time
	active map[string]*bundle.Bundle
	// refused remembers what was refused beside which others, so that looking
	// again costs nothing while neither changes.
	refused map[string]verdict
}

type verdict struct {
	files   map[string]string
	beside  string
	refusal error
}

// NewLibrary makes an empty Library. records are recent decisions that a new
// bundle makes again before it is let in; it may be nil.
func NewLibrary(e *engine.Engine, g *gate.Gate, records func() []decision.Record) *Library {
	if records == nil {
		records = func() []decision.Record { return nil }
	}
	return &Library{engine: e, gate: g, records: records, active: map[string]*bundle.Bundle{}, refused: map[string]verdict{}}
}

// Refusal is why a bundle is not enforced.
type Refusal struct {
	Reason string   // of the condition Ready
	Errors []string // file:row:col message
}

func (r *Refusal) Error() string { return r.Reason + ": " + strings.Join(r.Errors, "; ") }

// Admit makes a bundle active in place of the one of its name. The error is a
// *Refusal when the bundle is to blame; what was active stays then.
func (l *Library) Admit(ctx context.Context, name string, files map[string]string) (revision string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	beside := l.set(name).Revision()
	if v, ok := l.refused[name]; ok && v.beside == beside && maps.Equal(v.files, files) {
		return "", v.refusal
	}
	revision, err = l.admit(ctx, name, files)
	delete(l.refused, name)
	var refused *Refusal
	if errors.As(err, &refused) {
		l.refused[name] = verdict{files, beside, err}
	}
	return revision, err
}

func (l *Library) admit(ctx context.Context, name string, files map[string]string) (string, error) {
	b, err := bundle.FromFiles(name, files)
	if err != nil {
		return "", refusal(err)
	}
	if old := l.active[name]; old != nil && old.Revision == b.Revision {
		return b.Revision, nil
	}
	if _, err := l.gate.Admit(ctx, b, l.set(""), l.records()); err != nil {
		return "", refusal(err)
	}
	next := append(l.set(name), b)
	if err := l.engine.Activate(ctx, next); err != nil {
		return "", refusal(err)
	}
	l.active[name] = b
	return b.Revision, nil
}

// Remove takes a bundle out.
func (l *Library) Remove(ctx context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active[name] == nil {
		return nil
	}
	if err := l.engine.Activate(ctx, l.set(name)); err != nil {
		return fmt.Errorf("removing bundle %s: %w", name, err)
	}
	delete(l.active, name)
	return nil
}

// Active is the revision of a bundle that decides, "" if none does.
func (l *Library) Active(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.active[name]; b != nil {
		return b.Revision
	}
	return ""
}

// RolledBack notes that the engine goes on with other bundles than were
// activated, and names those that do not decide any more.
func (l *Library) RolledBack() (gone []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	decides := map[string]*bundle.Bundle{}
	for _, b := range l.engine.Snapshot().Bundles() {
		decides[b.Name] = b
	}
	for name, b := range l.active {
		if d := decides[name]; d == nil || d.Revision != b.Revision {
			gone = append(gone, name)
		}
	}
	l.active = decides
	slices.Sort(gone)
	return gone
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

// refusal turns an error of the gate or the engine into a Refusal, where the
// bundle is to blame.
func refusal(err error) error {
	var refused *gate.RefusedError
	var rolledBack engine.RolledBackError
	var problems module.Problems
	switch {
	case errors.As(err, &refused):
		return &Refusal{Reason: reasonOf(refused.Stage), Errors: lines(refused.Problems)}
	case errors.As(err, &rolledBack):
		return &Refusal{Reason: policy.PolicyBundleRolledBackReason, Errors: []string{err.Error()}}
	case errors.As(err, &problems):
		return &Refusal{Reason: policy.PolicyBundleCompileFailedReason, Errors: lines(problems)}
	}
	return err
}

func reasonOf(s gate.Stage) string {
	switch s {
	case gate.Packages:
		return policy.PolicyBundleUnsupportedReason
	case gate.Types:
		return policy.PolicyBundleOutputInvalidReason
	case gate.Tests, gate.Limits:
		return policy.PolicyBundleTestsFailedReason
	case gate.Replay:
		return policy.PolicyBundleReplayFailedReason
	}
	return policy.PolicyBundleCompileFailedReason
}

// most is how many errors are told; a bundle can have thousands.
const most = 20

func lines(ps module.Problems) []string {
	var out []string
	for _, p := range ps[:min(len(ps), most)] {
		out = append(out, p.Place()+" "+strings.ReplaceAll(p.Message, "\n", " "))
	}
	if len(ps) > most {
		out = append(out, fmt.Sprintf("and %d more", len(ps)-most))
	}
	return out
}
