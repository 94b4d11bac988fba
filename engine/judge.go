// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

// trial is the result of a decision that was made again.
type trial int

const (
	inTime trial = iota // there was an answer of any kind
	late
	broken // these bundles do not compile without the others, so nothing is known
	spent  // the case has used all its trials, or no worker was free for this one
)

// retrial makes the decision of a case again, with only these bundles of users.
type retrial func(bundle.Set) trial

// The bounds of a case. Finding one bundle among a hundred takes about fifteen trials, half of which
// are late.
const (
	mostTrials  = 200
	longestCase = time.Minute
)

// findFaultyBundles finds the bundles that caused a late decision about a namespace. A lack of
// processor time makes good policies late too, so the decision is made again with and without the
// suspected bundles. They are the cause only if it is late with them and in time without them. First
// it finds the part: the tenant's bundles, canaries, or the platform's. The bundles with the fewest
// rights are suspected first, and are left out when the next ones are. So a tenant cannot cause the
// rollback of a canary, nor a canary that of the bundle that it is to replace. Then it finds the
// bundles within the part. For a stuck decision it does not test again whether the whole set is late.
func findFaultyBundles(set bundle.Set, namespace string, oldestFirst func(bundle.Set) bundle.Set, again retrial, stuck bool) bundle.Set {
	rest, isLate := set, stuck
	for _, part := range []bundle.Set{ownBundles(set, namespace), set.CanariesIn(namespace), set.OwnedBy("")} {
		if part = part.WithoutWithheld(); len(part) == 0 {
			continue
		}
		whole := rest
		rest = withoutBundles(rest, part)
		switch again(rest) {
		case inTime:
			if !isLate && again(whole) != late {
				return nil
			}
			return narrowDown(rest, oldestFirst(part), again)
		case late:
			isLate = true // they were late in the second trial just now
		case broken, spent:
			return nil // the result without them is not known
		}
	}
	return nil
}

// narrowDown finds the faulty bundles in a part with which a decision is late, and without which it is
// in time. It adds the others again, in halves, as long as the decision stays in time. The rest is a
// minimal set: with any one of its bundles added the decision is late.
//
// Bundles may be late only together. The oldest are added first, so that the newest of them is left.
// The others made the same decisions in time before it was added, so it is the change, and its author
// should examine it. It is also the one whose earlier revision can be restored.
func narrowDown(rest, oldestFirst bundle.Set, again retrial) bundle.Set {
	if len(oldestFirst) == 1 {
		return oldestFirst
	}
	in := rest
	with := func(more ...*bundle.Bundle) bundle.Set { return append(slices.Clone(in), more...) }
	var out bundle.Set
	proved := map[*bundle.Bundle]bool{} // late when it was added alone
	// letIn reports whether the whole chunk was added.
	var letIn func(chunk bundle.Set, tried bool) bool
	letIn = func(chunk bundle.Set, tried bool) bool {
		how := late
		if !tried {
			if how = again(with(chunk...)); how == inTime {
				in = with(chunk...)
				return true
			}
		}
		if len(chunk) == 1 {
			out = append(out, chunk[0])
			proved[chunk[0]] = how == late
			return false
		}
		half := len(chunk) / 2
		all := letIn(chunk[:half], false)
		// If the whole first half was added, the second half completes the chunk.
		return letIn(chunk[half:], all && how == late) && all
	}
	letIn(oldestFirst, true)
	// A bundle that was added later may change the cost of an earlier one, such as one that replaces the
	// point, or one that the other needs to compile.
	for changed := len(out) > 1; changed; {
		changed = false
		for _, b := range slices.Clone(out) {
			switch again(with(b)) {
			case inTime:
				in = with(b)
				out = withoutBundles(out, bundle.Set{b})
				changed = len(out) > 1
			case late:
				proved[b] = true
			case broken:
				proved[b] = false
			case spent: // what is proved is proved
			}
		}
	}
	if len(out) == 1 {
		return out // with it the part is complete, and that is late
	}
	return slices.DeleteFunc(out, func(b *bundle.Bundle) bool { return !proved[b] })
}

// ownBundles returns the bundles of the namespace itself; none if the namespace is empty.
func ownBundles(set bundle.Set, namespace string) bundle.Set {
	if namespace == "" {
		return nil
	}
	return set.OwnedBy(namespace)
}

// withoutBundles returns a set without some of its bundles.
func withoutBundles(set, part bundle.Set) bundle.Set {
	return slices.DeleteFunc(slices.Clone(set), func(b *bundle.Bundle) bool { return slices.Contains(part, b) })
}

// newRetrial returns a retrial that repeats a late evaluation aside.
func (e *Engine) newRetrial(s *Snapshot, ev *evaluation) retrial {
	left, end := mostTrials, time.Now().Add(longestCase)
	return func(set bundle.Set) trial {
		if left--; left < 0 || time.Now().After(end) {
			return spent
		}
		v, err := e.viewAside(s, ev, set.DecidingIn(ev.ask.subject.Namespace))
		if err != nil {
			return broken
		}
		return e.tryAgain(v, ev)
	}
}

// viewAside returns the view that would decide if only these bundles did. It uses compiled parts if
// possible.
func (e *Engine) viewAside(s *Snapshot, ev *evaluation, set bundle.Set) (*compiledView, error) {
	all := append(bundle.Set{e.builtin}, set...)
	content := all.ContentHash()
	if v := ev.query.view; v.revision == content {
		return v, nil
	}
	for _, from := range []*Snapshot{s, e.base} {
		if v, ok := from.platformViews()[content]; ok {
			return v, nil
		}
	}
	return newView(context.Background(), all)
}

// tryAgain evaluates again and reports whether there was an answer of any kind in time. An undefined
// point counts as an answer, and so does a point that withheld bundles take part in.
func (e *Engine) tryAgain(v *compiledView, ev *evaluation) trial {
	ctx := context.Background()
	q, err := v.preparedQuery(ctx, ev.ask.name)
	if err != nil || !q.defined || len(q.withheld) > 0 {
		return inTime
	}
	if !e.shares.mayTry(q.tenant) {
		return spent
	}
	again := *ev.ask
	again.judging = true
	again.answer = func(ast.Value, string) error { return nil }
	retry := newEvaluation(q, ev.input, &again)
	outcome, _ := e.runEvaluation(ctx, retry)
	switch {
	case !retry.late && outcome == decision.TimedOut: // it did not begin
		return spent
	case !retry.late:
		return inTime
	}
	// Its remaining time must not count against the next trials.
	select {
	case <-retry.done:
	case <-time.After(e.grace):
	}
	return late
}
