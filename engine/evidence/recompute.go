// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Bounds of a report, and of what is kept for the next decisions.
const (
	mostDifferences = 20
	mostSnapshots   = 64
	mostEngines     = 4
)

// patience is how many times the budget of its point a decision may take: nobody waits for it.
const patience = 20

// Recomputed counts what became of the decisions of an archive.
type Recomputed struct {
	// Same is how many have the recorded answer again.
	Same int `json:"same"`
	// Different is how many have another one, and Differences has the first of them.
	Different   int           `json:"different,omitempty"`
	Differences []*Difference `json:"differences,omitempty"`
	// Undecided is how many no policy decided, so that the fallback of the point was the answer, or whose facts were not all known. Nothing
	// is recomputed for them.
	Undecided int `json:"undecided,omitempty"`
	// Masked is how many have another answer and hidden values, which may be why.
	Masked int `json:"masked,omitempty"`
	// Late is how many could not be made again in time.
	Late int `json:"late,omitempty"`
	// Without has how many decisions could not be made again because a bundle is missing from the archive, by NAME@REVISION.
	Without map[string]int `json:"without,omitempty"`
}

// Difference is a decision that does not follow from its facts by its policies.
type Difference struct {
	// Decision is its id in the log.
	Decision string `json:"decision"`
	compare.Difference
}

// FailureMessage says what is wrong with the decisions; empty if nothing is.
func (r *Recomputed) FailureMessage() string {
	var out []string
	if r.Different > 0 {
		out = append(out, fmt.Sprintf("%d have another answer than recorded", r.Different))
	}
	without := 0
	for _, n := range r.Without {
		without += n
	}
	if without > 0 {
		out = append(out, fmt.Sprintf("%d need bundles that the archive does not have", without))
	}
	if r.Late > 0 {
		out = append(out, fmt.Sprintf("%d could not be made again in time", r.Late))
	}
	return strings.Join(out, ", ")
}

// recomputeError is an error that is not about the archive.
type recomputeError struct{ err error }

func (e recomputeError) Error() string { return e.err.Error() }

// recomputer makes decisions again.
type recomputer struct {
	manifest  *Manifest
	policies  map[string][]byte         // archives, by revision
	engines   map[string]*engine.Engine // by the revision of the built-in policies
	snapshots map[string]*engine.Snapshot
	result    Recomputed
}

func newRecomputer(m *Manifest, policies map[string][]byte) *recomputer {
	return &recomputer{
		manifest: m, policies: policies, engines: map[string]*engine.Engine{}, snapshots: map[string]*engine.Snapshot{},
		result: Recomputed{Without: map[string]int{}},
	}
}

// closeEngines forgets all compiled policies.
func (c *recomputer) closeEngines() {
	for _, e := range c.engines {
		e.Close()
	}
	clear(c.engines)
	clear(c.snapshots)
}

// recomputeDecision makes a decision again and counts what became of it.
func (c *recomputer) recomputeDecision(ctx context.Context, r decision.Record) error {
	if _, missing := decision.FindMissingFact(r.Input); missing || r.Outcome != decision.Decided {
		c.result.Undecided++
		return nil
	}
	if id, ok := c.findMissingBundle(r.Bundles); ok {
		c.result.Without[id]++
		return nil
	}
	e, s, err := c.compilePolicies(ctx, r)
	if err != nil {
		return err
	}
	now, err := compare.ReplayWithRetries(ctx, e, s, r, engine.Strikes)
	if err != nil {
		return recomputeError{err}
	}
	if now.Outcome == decision.TimedOut {
		c.result.Late++
		return nil
	}
	d, err := compare.DiffRecords(e, r, now)
	switch {
	case err != nil:
		return err
	case d == nil:
		c.result.Same++
	case len(r.Masked) > 0:
		c.result.Masked++
	default:
		if c.result.Different++; len(c.result.Differences) < mostDifferences {
			c.result.Differences = append(c.result.Differences, &Difference{Decision: decisionName(r), Difference: *d})
		}
	}
	return nil
}

func decisionName(r decision.Record) string {
	if r.ID == 0 {
		return r.Origin
	}
	return fmt.Sprintf("%s-%d", r.Origin, r.ID)
}

// findMissingBundle returns the first bundle of a decision that the archive does not have. A decision names at least the built-in
// policies.
func (c *recomputer) findMissingBundle(ids []string) (string, bool) {
	builtin := false
	for _, id := range ids {
		_, revision := decision.SplitBundleID(id)
		p, ok := c.manifest.findPolicy(revision)
		if !ok {
			return id, true
		}
		builtin = builtin || p.Builtin
	}
	return "the built-in policies", !builtin
}

// compilePolicies returns the policies of a decision, ready to decide.
func (c *recomputer) compilePolicies(ctx context.Context, r decision.Record) (*engine.Engine, *engine.Snapshot, error) {
	var builtin string
	var ids []string
	for _, id := range r.Bundles {
		_, revision := decision.SplitBundleID(id)
		if p, _ := c.manifest.findPolicy(revision); p.Builtin {
			builtin = revision
		} else {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	e, err := c.startEngine(builtin)
	if err != nil {
		return nil, nil, err
	}
	key := builtin + " " + strings.Join(ids, " ")
	if s, ok := c.snapshots[key]; ok {
		return e, s, nil
	}
	var set bundle.Set
	for _, id := range ids {
		b, err := c.readBundle(id)
		if err != nil {
			return nil, nil, err
		}
		set = append(set, b)
	}
	s, err := e.CompileBundles(ctx, set)
	if err != nil {
		return nil, nil, fmt.Errorf("compiling the policies of decision %s: %w", decisionName(r), err)
	}
	if len(c.snapshots) >= mostSnapshots {
		clear(c.snapshots)
	}
	c.snapshots[key] = s
	return e, s, nil
}

// startEngine returns the engine of built-in policies.
func (c *recomputer) startEngine(revision string) (*engine.Engine, error) {
	if e, ok := c.engines[revision]; ok {
		return e, nil
	}
	b, err := c.unpackBundle("builtin", revision, bundle.AsBuiltin())
	if err != nil {
		return nil, err
	}
	e, err := engine.FromBundle(b, engine.WithPatience(patience))
	if err != nil {
		return nil, fmt.Errorf("compiling the built-in policies %s: %w", bundle.ShortRevision(revision), err)
	}
	if len(c.engines) >= mostEngines {
		c.closeEngines()
	}
	c.engines[revision] = e
	return e, nil
}

// readBundle returns a bundle as a record names it: NAME@REVISION, or NAMESPACE/NAME@REVISION for that of a tenant.
func (c *recomputer) readBundle(id string) (*bundle.Bundle, error) {
	name, revision := decision.SplitBundleID(id)
	if namespace, own, ok := strings.Cut(name, "/"); ok {
		return c.unpackBundle(own, revision, bundle.AsTenant(namespace))
	}
	return c.unpackBundle(name, revision)
}

// unpackBundle reads a bundle of the archive, and checks that its content has the revision that it is named by.
func (c *recomputer) unpackBundle(name, revision string, opts ...bundle.Option) (*bundle.Bundle, error) {
	b, err := bundle.FromArchive(name, bytes.NewReader(c.policies[revision]), nil, opts...)
	if err != nil {
		return nil, TamperedError{policyFile(revision), err}
	}
	if b.Revision != revision {
		return nil, TamperedError{policyFile(revision), fmt.Errorf("its content has the revision %s", b.Revision)}
	}
	return b, nil
}
