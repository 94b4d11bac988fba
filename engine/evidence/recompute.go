// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/record/mask"
)

// Bounds of a report, and of what is kept for the next decisions.
const (
	mostDifferences = 20
	mostSnapshots   = 64
	mostEngines     = 4
)

// patience is how many times the budget of its point a decision may take: no caller waits for it.
const patience = 10

// mostLate is how many decisions of the same policies may be late before the others are not tried.
const mostLate = 3

// Recomputed counts what became of the decisions of an archive.
type Recomputed struct {
	// Same is how many have the recorded answer again.
	Same int `json:"same"`
	// Different is how many have another one, and Differences has the first of them.
	Different   int           `json:"different,omitempty"`
	Differences []*Difference `json:"differences,omitempty"`
	// Fallbacks is how many no policy decided. Their answer is the fallback of the point.
	Fallbacks int `json:"fallbacks,omitempty"`
	// Unmatched is how many name bundles that are not all which their revision is of: some were withheld or missing, or the record was
	// changed.
	Unmatched int `json:"unmatched,omitempty"`
	// Masked is how many have another answer and hidden values, which may be why.
	Masked int `json:"masked,omitempty"`
	// Late is how many could not be made again in time.
	Late int `json:"late,omitempty"`
	// Without is how many could not be made again because the archive does not have a bundle, or because this regatta does not compile it.
	// Missing has the first of these bundles, as NAME@REVISION, with why.
	Without int               `json:"without,omitempty"`
	Missing map[string]string `json:"missing,omitempty"`
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
	for _, part := range []struct {
		n    int
		text string
	}{
		{r.Different, "have another answer than recorded"}, {r.Unmatched, "name other bundles than their revision is of"},
		{r.Without, "need bundles that are missing or do not compile"}, {r.Late, "could not be made again in time"},
	} {
		if part.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	return strings.Join(out, ", ")
}

// recomputeError is an error that is not about the archive.
type recomputeError struct{ err error }

func (e recomputeError) Error() string { return e.err.Error() }

func (e recomputeError) Unwrap() error { return e.err }

// recomputer makes decisions again.
type recomputer struct {
	manifest *Manifest
	archives map[string][]byte         // by revision
	engines  map[string]*engine.Engine // by the revision of the built-in policies
	// compiled are the policies of decisions, by the bundles that these name. order has their keys, the oldest first.
	compiled map[string]*compiledPolicies
	order    []string
	result   Recomputed
}

// compiledPolicies are those of some decisions.
type compiledPolicies struct {
	engine   *engine.Engine
	snapshot *engine.Snapshot
	// missing is the bundle without which there are none, and why the reason.
	missing, why string
	late         int
}

func newRecomputer(m *Manifest, archives map[string][]byte) *recomputer {
	return &recomputer{manifest: m, archives: archives, engines: map[string]*engine.Engine{}, compiled: map[string]*compiledPolicies{}, result: Recomputed{Missing: map[string]string{}}}
}

// closeEngines forgets all compiled policies.
func (c *recomputer) closeEngines() {
	for _, e := range c.engines {
		e.Close()
	}
	clear(c.engines)
	clear(c.compiled)
	c.order = nil
}

// recomputeDecision makes the decision of a line again and counts what became of it.
func (c *recomputer) recomputeDecision(ctx context.Context, l record.Line) error {
	r := l.Record
	p, err := c.findPolicies(ctx, r)
	if err != nil {
		return err
	}
	switch {
	case p.missing != "":
		c.result.Without++
		if id := decision.TruncateText(p.missing, longestName); len(c.result.Missing) < mostNames {
			c.result.Missing[id] = p.why
		}
		return nil
	case p.late >= mostLate:
		c.result.Late++
		return nil
	case r.Outcome != decision.Decided:
		return c.checkFallback(ctx, p, l)
	}
	now, err := compare.ReplayOnce(ctx, p.engine, p.snapshot, r)
	if err == nil {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
		return recomputeError{err}
	case now.Outcome == decision.TimedOut:
		p.late++
		c.result.Late++
		return nil
	case now.Revision != r.Revision || !slices.Equal(sortIDs(now.Bundles), sortIDs(r.Bundles)):
		c.result.Unmatched++
		return nil
	}
	return c.countAnswer(p, l, now, &c.result.Same)
}

// checkFallback checks that the answer to a question that no policy decided is the fallback of its point, or the strictest one, which it is
// where a bundle was withheld or missing.
func (c *recomputer) checkFallback(ctx context.Context, p *compiledPolicies, l record.Line) error {
	point, _ := catalog.FindPoint(l.Record.Point) // the line was read, so there is one
	then, strictest := l.Record, l.Record
	strictest.Output = point.Undecided(then.Input, true)
	if d, err := compare.DiffAnswers(p.engine, then, strictest); err == nil && d == nil {
		c.result.Fallbacks++
		return nil
	}
	now := then
	now.Output = p.engine.AnswerUndecided(ctx, p.snapshot, point, then.Subject, then.Input)
	if err := context.Cause(ctx); err != nil {
		return recomputeError{err}
	}
	return c.countAnswer(p, l, now, &c.result.Fallbacks)
}

// countAnswer compares an answer with the recorded one. same counts those that are.
func (c *recomputer) countAnswer(p *compiledPolicies, l record.Line, now decision.Record, same *int) error {
	d, err := compare.DiffAnswers(p.engine, l.Record, now)
	switch {
	case err != nil:
		return recomputeError{err}
	case d == nil:
		*same++
	case hasHiddenValue(l):
		c.result.Masked++
	default:
		if c.result.Different++; len(c.result.Differences) < mostDifferences {
			c.result.Differences = append(c.result.Differences, &Difference{Decision: decision.TruncateText(decisionName(l.Record.Origin, l.Record.ID), longestName), Difference: *d})
		}
	}
	return nil
}

// hasHiddenValue reports whether one of the values that a line says are hidden is there, and hidden.
func hasHiddenValue(l record.Line) bool {
	if len(l.Record.Masked) == 0 {
		return false
	}
	var root any
	if json.Unmarshal(l.Text, &root) != nil {
		return false
	}
	return slices.ContainsFunc(l.Record.Masked, func(pointer string) bool {
		v, ok := findValue(root, pointer)
		return ok && mask.IsHidden(v)
	})
}

// findValue returns the value that a JSON pointer leads to.
func findValue(v any, pointer string) (any, bool) {
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return nil, false
	}
	for name := range strings.SplitSeq(rest, "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch in := v.(type) {
		case map[string]any:
			if v, ok = in[name]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func decisionName(origin string, id uint64) string {
	if id == 0 {
		return origin
	}
	return fmt.Sprintf("%s-%d", origin, id)
}

func sortIDs(ids []string) []string { return slices.Sorted(slices.Values(ids)) }

// findPolicies returns the policies of a decision, compiled before or now.
func (c *recomputer) findPolicies(ctx context.Context, r decision.Record) (*compiledPolicies, error) {
	key := r.Subject.Namespace + " " + strings.Join(sortIDs(r.Bundles), " ")
	if p, ok := c.compiled[key]; ok {
		return p, nil
	}
	p, err := c.compilePolicies(ctx, r)
	if err != nil {
		return nil, err
	}
	if len(c.order) >= mostSnapshots {
		delete(c.compiled, c.order[0])
		c.order = c.order[1:]
	}
	c.compiled[key], c.order = p, append(c.order, key)
	return p, nil
}

// compilePolicies compiles the policies of a decision. An error is not about them.
func (c *recomputer) compilePolicies(ctx context.Context, r decision.Record) (*compiledPolicies, error) {
	builtin, why := "", ""
	for _, id := range r.Bundles {
		name, revision := decision.SplitBundleID(id)
		namespace, _, owned := strings.Cut(name, "/")
		switch _, ok := c.manifest.findPolicy(revision); {
		case !ok:
			why = "the archive does not have it"
		case owned && namespace != r.Subject.Namespace:
			why = "it decides about nothing outside of its namespace"
		case name == builtinName:
			builtin = revision
		}
		if why != "" {
			return &compiledPolicies{missing: id, why: why}, nil
		}
	}
	if builtin == "" {
		return &compiledPolicies{missing: builtinName, why: "a record does not name them"}, nil
	}
	e, err := c.startEngine(builtin)
	if err != nil {
		return c.explainUncompiled(ctx, builtinName+"@"+builtin, err)
	}
	var set bundle.Set
	for _, id := range sortIDs(r.Bundles) {
		name, revision := decision.SplitBundleID(id)
		if name == builtinName {
			continue
		}
		var opts []bundle.Option
		if namespace, own, owned := strings.Cut(name, "/"); owned {
			name, opts = own, []bundle.Option{bundle.AsTenant(namespace)}
		}
		b, err := c.unpackBundle(name, revision, opts...)
		if err != nil {
			return c.explainUncompiled(ctx, id, err)
		}
		set = append(set, b)
	}
	s, err := e.CompileBundles(ctx, set, c.latestSnapshot(e))
	if err == nil && s.NamespaceProblem(r.Subject.Namespace) != nil {
		err = s.NamespaceProblem(r.Subject.Namespace)
	}
	if err != nil {
		return c.explainUncompiled(ctx, strings.Join(set.IDs(), ", "), err)
	}
	return &compiledPolicies{engine: e, snapshot: s}, nil
}

// explainUncompiled tells policies that do not compile from other errors.
func (c *recomputer) explainUncompiled(ctx context.Context, id string, err error) (*compiledPolicies, error) {
	var tampered TamperedError
	switch {
	case ctx.Err() != nil:
		return nil, recomputeError{context.Cause(ctx)}
	case errors.As(err, &tampered):
		return nil, err
	}
	return &compiledPolicies{missing: id, why: "this regatta does not compile it: " + decision.TruncateText(err.Error(), longestName)}, nil
}

// latestSnapshot returns the newest snapshot of an engine, whose compiled parts the next one takes; nil if there is none.
func (c *recomputer) latestSnapshot(e *engine.Engine) *engine.Snapshot {
	for _, key := range slices.Backward(c.order) {
		if p := c.compiled[key]; p.engine == e {
			return p.snapshot
		}
	}
	return nil
}

// startEngine returns the engine of built-in policies.
func (c *recomputer) startEngine(revision string) (*engine.Engine, error) {
	if e, ok := c.engines[revision]; ok {
		return e, nil
	}
	b, err := c.unpackBundle(builtinName, revision, bundle.AsBuiltin())
	if err != nil {
		return nil, err
	}
	e, err := engine.FromBundle(b, engine.WithPatience(patience))
	if err != nil {
		return nil, err
	}
	if len(c.engines) >= mostEngines {
		c.closeEngines()
	}
	c.engines[revision] = e
	return e, nil
}

// unpackBundle reads a bundle of the archive, and checks that its content has the revision that it is named by.
func (c *recomputer) unpackBundle(name, revision string, opts ...bundle.Option) (*bundle.Bundle, error) {
	b, err := bundle.FromArchive(name, bytes.NewReader(c.archives[revision]), nil, opts...)
	if err != nil {
		return nil, err
	}
	if b.Revision != revision {
		return nil, TamperedError{policyFile(revision), fmt.Errorf("its content has the revision %s", b.Revision)}
	}
	return b, nil
}
