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

// trial is how a decision went that was made again.
type trial int

const (
	inTime trial = iota // there was an answer, of any kind
	late
	broken // these bundles do not compile without the others, so nothing is known
	spent  // the case has had all its trials, or nothing was free to make this one
)

// retrial makes the decision of a case again, with these bundles of users and no others.
type retrial func(bundle.Set) trial

// The bounds of a case. To find one bundle of a hundred takes about fifteen trials, of
// which half are late.
const (
	mostTrials  = 200
	longestCase = time.Minute
)

// findFaultyBundles finds the bundles that are to blame for a late decision about a namespace. A
// processor that was taken away makes good policies late too, so the decision is made
// again, with the suspected bundles and without: only when there is no answer with
// them and one without are they to blame. First it finds the part: a tenant's own,
// canaries, or the platform's. Those who may say least are suspected first, and are
// out of the way when the next ones are, so that a tenant cannot have a canary rolled
// back, nor a canary the bundle that it is to replace. Then it finds the bundles
// within the part. It is not decided anew whether the whole is late where the decision
// is stuck.
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
			isLate = true // they have just had their second chance
		case broken, spent:
			return nil // it is not known what would be without them
		}
	}
	return nil
}

// narrowDown finds the bundles that are to blame of a part with which a decision is late,
// and without which it is in time: it lets the others in again, in halves, for as long
// as the decision stays in time. What is left is a smallest set: with any one of them
// let in as well the decision is late.
//
// Bundles may be late only together. The oldest are let in first, so that the newest of
// them is left: the others made the same decisions in time until it came, it is what
// changed, and its author is the one to look at it. It also is the one
// whose place something good can take again.
func narrowDown(rest, oldestFirst bundle.Set, again retrial) bundle.Set {
	if len(oldestFirst) == 1 {
		return oldestFirst
	}
	in := rest
	with := func(more ...*bundle.Bundle) bundle.Set { return append(slices.Clone(in), more...) }
	var out bundle.Set
	proved := map[*bundle.Bundle]bool{} // late when it was let in alone
	// letIn returns whether all of the chunk was let in.
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
		// With all of the first half in, the second one makes the chunk whole.
		return letIn(chunk[half:], all && how == late) && all
	}
	letIn(oldestFirst, true)
	// A bundle that was let in later may change what an earlier one costs, such as one that
	// replaces the point, or one without which the other does not compile.
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
		return out // with it the part is whole, which is late
	}
	return slices.DeleteFunc(out, func(b *bundle.Bundle) bool { return !proved[b] })
}

// ownBundles are the bundles that a namespace's own people wrote, if it is one.
func ownBundles(set bundle.Set, namespace string) bundle.Set {
	if namespace == "" {
		return nil
	}
	return set.OwnedBy(namespace)
}

// withoutBundles is a set without some of its bundles.
func withoutBundles(set, part bundle.Set) bundle.Set {
	return slices.DeleteFunc(slices.Clone(set), func(b *bundle.Bundle) bool { return slices.Contains(part, b) })
}

// newRetrial makes an evaluation that was late again, aside.
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

// viewAside is what would decide if only these bundles did, from what is compiled
// already if it can be.
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

// tryAgain asks again and reports whether an answer, of any kind, came in time.
// That no policy defines the point is an answer, and so is the one of a point that
// withheld bundles take part in.
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
	case !retry.late && outcome == decision.TimedOut: // it did not even begin
		return spent
	case !retry.late:
		return inTime
	}
	// What it still takes must not count against those who are asked next.
	select {
	case <-retry.done:
	case <-time.After(e.grace):
	}
	return late
}
