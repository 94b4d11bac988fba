// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
)

// replayFunc has the form of compare.ReplayWithRetries.
type replayFunc func(context.Context, *engine.Engine, *engine.Snapshot, decision.Record, int) (decision.Record, error)

// strikes is how many late answers in a row end the search: policies that loop would take hours.
const strikes = 5

// ErrLate means that the search ended because answers were late, so that there is no result.
var ErrLate = errors.New("answers were late")

// searcher searches one point.
type searcher struct {
	Question
	before, after *side
	point         decision.UntypedPoint
	subject       decision.Subject
	exempts       *exemption
	analyses      []*analysis
	facts         map[string]*fact
	unvaried      map[string]bool
	report        *PointReport
	// replay makes a decision, again if it is late.
	replay replayFunc
	late   int
	// visit tries a world; tryWorld if it is nil.
	visit func(context.Context, *space, world) (*Counterexample, string, error)
}

// visitWorld tries a world, in the way of the search.
func (s *searcher) visitWorld(ctx context.Context, sp *space, w world) (*Counterexample, string, error) {
	if s.visit != nil {
		return s.visit(ctx, sp, w)
	}
	return s.tryWorld(ctx, sp, w)
}

// FindCounterexample searches until it finds a counterexample, or until its limits. Its error says that
// policies do not compile, that a point does not exist, that Unless is no condition, that Limits has more
// than MaxWorlds, or that answers were late. If the context ends, the report says what was tried so far.
func FindCounterexample(ctx context.Context, q Question) (*Report, error) {
	start := time.Now()
	if q.Limits.Worlds < 1 || q.Limits.Worlds > MaxWorlds {
		return nil, fmt.Errorf("reading the limits: worlds is %d, want 1 to %d", q.Limits.Worlds, MaxWorlds)
	}
	exempts, err := newExemption(q.Unless)
	if err != nil {
		return nil, err
	}
	before, after, stop, err := newSides(ctx, q)
	defer stop()
	if err != nil {
		return nil, fmt.Errorf("compiling: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, q.Limits.Timeout)
	defer cancel()
	out := &Report{Mode: q.Mode, Seed: q.Limits.Seed, Points: []PointReport{}}
	defer func() { out.Took = time.Since(start) }()
	all, err := newSearchers(q, before, after, exempts)
	if err != nil {
		return nil, err
	}
	// A few worlds of each point first: what is easy to find need not wait for the points before it.
	if len(all) > 1 && q.Limits.Worlds > firstWorlds {
		if err := out.searchAll(ctx, limited, all, firstWorlds); err != nil || out.Found != nil || out.Stopped != "" {
			return out, err
		}
	}
	return out, out.searchAll(ctx, limited, all, q.Limits.Worlds)
}

// firstWorlds is how many worlds of each point are tried first.
const firstWorlds = 200

// newSearchers returns the searchers of the points that the bundles take part in.
func newSearchers(q Question, before, after *side, exempts *exemption) ([]*searcher, error) {
	var out []*searcher
	subject := decision.Subject{Kind: "Case", Namespace: q.Namespace, Name: "prove"}
	for _, p := range catalog.All() {
		if len(q.Points) > 0 && !slices.Contains(q.Points, p.Name) {
			continue
		}
		s := &searcher{Question: q, before: before, after: after, point: p, subject: subject, exempts: exempts, replay: compare.ReplayWithRetries}
		takesPart, err := s.readRules()
		if err != nil {
			return nil, err
		}
		if takesPart {
			out = append(out, s)
		}
	}
	return out, nil
}

// searchAll tries so many worlds of each point, and replaces the reports of the points. A point for which
// there is no time keeps the report that it has.
func (out *Report) searchAll(ctx, limited context.Context, all []*searcher, worlds int) error {
	for i, s := range all {
		s.Limits.Worlds = worlds
		s.report = &PointReport{Point: s.point.Name, Facts: []FactReport{}, NotVaried: slices.Sorted(maps.Keys(s.unvaried))}
		found, err := s.searchPoint(limited)
		// What was found counts, whatever ended the search.
		out.Found = found
		if i < len(out.Points) && (err == nil || s.report.Tried > out.Points[i].Tried) {
			s.report.Unstable = max(s.report.Unstable, out.Points[i].Unstable) // answers that differ do not always
			out.Points[i] = *s.report
		} else if i == len(out.Points) {
			out.Points = append(out.Points, *s.report)
		}
		switch {
		case found != nil:
			return nil
		case ctx.Err() != nil:
			out.Stopped, out.Interrupted = "the search was interrupted", true
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			out.Stopped = fmt.Sprintf("the time of %s was over", s.Limits.Timeout)
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// readRules finds the facts that vary. It reports whether the bundles take part in the point.
func (s *searcher) readRules() (bool, error) {
	sides := s.decidingSides()
	all := make([][]*ast.Rule, len(sides))
	for i, side := range sides {
		var err error
		if all[i], err = side.engine.PolicySource(side.snapshot, s.subject).ReachableRules(s.point.Name); err != nil {
			return false, err
		}
	}
	changed := changedRules(sides, all)
	alone := s.Mode == NeverFails && len(s.after.set) == 0 // it is about the built-in policies
	isOwn := func(r *ast.Rule) bool { return isUsers(r) || changed[r] || alone }
	if !slices.ContainsFunc(slices.Concat(all...), isOwn) {
		return false, nil
	}
	s.facts, s.unvaried = map[string]*fact{}, map[string]bool{}
	for i, side := range sides {
		rules := all[i]
		a := analyzeRules(s.point.In, append(rules, s.exempts.conditionRules()...), side.dataValue(), func(r *ast.Rule) bool { return isOwn(r) || s.exempts.hasRule(r) })
		s.analyses = append(s.analyses, a)
		for name := range a.unvaried {
			s.unvaried[name] = true
		}
		for name, f := range a.facts {
			s.mergeFact(name, f)
		}
	}
	if s.Namespace != "" {
		paths := namespacePaths(s.point.In)
		maps.DeleteFunc(s.facts, func(_ string, f *fact) bool { return f.path.isNamespace(paths) })
	}
	return true, nil
}

// decidingSides are those whose answers count.
func (s *searcher) decidingSides() []*side {
	if s.Mode == NeverFails {
		return []*side{s.after}
	}
	return []*side{s.before, s.after}
}

// isUsers reports whether a rule is in a package that extends or replaces the built-in policies.
func isUsers(r *ast.Rule) bool {
	if len(r.Module.Package.Path) < 2 {
		return false
	}
	root, _ := r.Module.Package.Path[1].Value.(ast.String)
	return root == "extend" || root == "override"
}

func (s *searcher) mergeFact(name string, f *fact) {
	known := s.facts[name]
	if known == nil {
		s.facts[name] = f
		return
	}
	known.read, known.inText, known.tested = known.read || f.read, known.inText || f.inText, known.tested || f.tested
	known.asNumber, known.clock = known.asNumber || f.asNumber, known.clock || f.clock
	known.cased, known.spaced = known.cased || f.cased, known.spaced || f.spaced
	for _, t := range f.constants {
		known.addConstant(t)
	}
	maps.Copy(known.patterns, f.patterns)
}

func (s *searcher) addUnvaried(name string) {
	if !slices.Contains(s.report.NotVaried, name) {
		s.report.NotVaried = append(s.report.NotVaried, name)
		slices.Sort(s.report.NotVaried)
	}
}

// searchPoint tries the worlds of all bases.
func (s *searcher) searchPoint(ctx context.Context) (*Counterexample, error) {
	bases, err := s.findBases(ctx)
	if err != nil {
		return nil, err
	}
	var spaces []*space
	var sizes []int
	total, complete := 0, true
	for _, base := range bases {
		sp := newSpace(string(s.point.Name), s.point.In, base, s.facts, s.Limits.Elements)
		spaces = append(spaces, sp)
		n, err := sp.countWorlds(ctx, s.Limits.Worlds)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, n)
		total, complete = total+n, complete && n <= s.Limits.Worlds
	}
	s.describeSpaces(spaces)
	if complete = complete && total <= s.Limits.Worlds; complete {
		s.report.Worlds = total
	}
	share := max(s.Limits.Worlds/len(spaces), 1)
	for i, sp := range spaces {
		var found *Counterexample
		var err error
		if complete || sizes[i] <= share {
			found, err = s.tryAll(ctx, sp, sizes[i])
		} else {
			found, err = s.tryDrawn(ctx, sp, share, uint64(i))
		}
		if found != nil || err != nil {
			return found, err
		}
	}
	s.report.Exhausted = complete && len(s.report.NotVaried) == 0 && s.report.TimedOut == 0
	return nil, nil
}

// tryAll tries all n worlds of a base, those that differ least from it first.
func (s *searcher) tryAll(ctx context.Context, sp *space, n int) (*Counterexample, error) {
	for changes := 0; changes <= len(sp.dims) && n > 0; changes++ {
		for w := range sp.enumerateWorlds(ctx, changes) {
			n--
			found, _, err := s.visitWorld(ctx, sp, w)
			if found != nil || err != nil {
				return found, err
			}
		}
	}
	return nil, ctx.Err()
}

// maxCorpus bounds the worlds with answers of their own that are kept to be changed.
const maxCorpus = 4096

// tryDrawn tries so many worlds of a base, each once.
func (s *searcher) tryDrawn(ctx context.Context, sp *space, n int, stream uint64) (*Counterexample, error) {
	d := &drawer{space: sp, rand: rand.New(rand.NewPCG(s.Limits.Seed, stream)), hints: map[*ast.Rule]*ruleHints{}, mixed: s.visit != nil}
	for _, a := range s.analyses {
		for _, r := range a.rules {
			d.hints[r] = a.hints[r]
			if a.written[r] || a.readers[r] {
				d.rules = append(d.rules, r)
			}
		}
	}
	known, answers := map[uint64]bool{}, map[string]bool{} // a hash of each world, because worlds are long
	for tries := 0; len(known) < n && tries < 4*n && ctx.Err() == nil; tries++ {
		w := d.drawWorld()
		hash := w.hashChoices()
		if known[hash] {
			continue
		}
		known[hash] = true
		found, answer, err := s.visitWorld(ctx, sp, w)
		if found != nil || err != nil {
			return found, err
		}
		if !answers[answer] && len(answers) < maxCorpus {
			answers[answer] = true
			d.corpus = append(d.corpus, w)
		}
	}
	return nil, ctx.Err()
}

// tryWorld makes the decision in a world. It returns a confirmed counterexample that is shrunk, or the
// kinds of the answers.
func (s *searcher) tryWorld(ctx context.Context, sp *space, w world) (*Counterexample, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	pair, err := s.decideBoth(ctx, sp.buildInput(w))
	if err != nil || pair == nil {
		return nil, "", err
	}
	if pair.kind == "" && s.Mode != NeverFails && pair.old.Outcome != decision.Decided {
		return nil, pair.describeAnswers(), nil // nothing is known of what the old policies would decide
	}
	s.report.Tried++
	if pair.kind == "" {
		return nil, pair.describeAnswers(), nil
	}
	confirmed, err := s.confirmAnswers(ctx, pair)
	if err != nil || !confirmed {
		return nil, "", err
	}
	found, err := s.shrinkWorld(ctx, sp, w, pair)
	return found, "", err
}
