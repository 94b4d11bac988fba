// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// Bounds on what the policies of namespaces add to the configuration, which is one
// object for all of them: an object has at most 1.5 MB.
const (
	// mostOwn is how many guards one namespace may have.
	mostOwn = 20
	// longestOwn is how long their conditions may be together; labels are left out
	// beyond it, so that more is asked about.
	longestOwn = 4000
	// longestOwned is the same for all namespaces; guards are left out beyond it.
	longestOwned = 400_000
)

// said is what the policies of a namespace said last.
type said struct {
	revision string // of the policies that were asked
	answered bool   // they said something, now or before
	guards   []protection.Guard
	failure  string
}

// owned are the guards that the policies of some namespaces have and those of the
// cluster do not, each for its namespace only, whatever it says. unknown are the
// namespaces whose policies have never answered this process. left is why some guards
// are not as they were meant.
func (r *Rules) owned(ctx context.Context, cluster []protection.Guard) (guards []protection.Guard, unknown, left []string) {
	r.owners.Lock()
	defer r.owners.Unlock()
	snapshot := r.engine.Snapshot()
	namespaces := snapshot.Namespaces()
	maps.DeleteFunc(r.said, func(ns string, _ said) bool { return !slices.Contains(namespaces, ns) })
	size := 0
	for _, ns := range namespaces {
		last := r.ask(ctx, snapshot, ns)
		if !last.answered {
			unknown = append(unknown, ns)
		}
		own, why := bounded(ns, last, cluster)
		left = append(left, why...)
		for i, g := range own {
			if size += len(condition(g)); size > longestOwned {
				left = append(left, fmt.Sprintf("%d guards of namespace %s are left out: those of all namespaces are too long together", len(own)-i, ns))
				break
			}
			guards = append(guards, g)
		}
	}
	return guards, unknown, left
}

// ask asks the policies of a namespace, once for each revision unless they failed.
// Those that do not answer keep what they said before.
func (r *Rules) ask(ctx context.Context, snapshot *engine.Snapshot, namespace string) said {
	subject := decision.Subject{Kind: "ValidatingWebhookConfiguration", Namespace: namespace, Name: ConfigurationName}
	last := r.said[namespace]
	if now := snapshot.RevisionFor(subject); now != last.revision || last.failure != "" {
		out, rec := engine.Decide(context.WithoutCancel(ctx), r.engine, protection.GuardsPoint(), subject, protection.GuardsInput{Gates: r.gates})
		last.revision, last.failure = now, ""
		if rec.Outcome == decision.Decided {
			last.guards, last.answered = out.Guards, true
		} else {
			last.failure = string(rec.Outcome) + ": " + rec.Error
		}
		if r.said == nil {
			r.said = map[string]said{}
		}
		r.said[namespace] = last
	}
	return last
}

// bounded are the guards that are a namespace's own, as far as it may have them.
func bounded(namespace string, s said, cluster []protection.Guard) (own []protection.Guard, left []string) {
	if s.failure != "" {
		left = append(left, fmt.Sprintf("the policies of namespace %s could not decide what they are asked about, so it stays as it was: %s", namespace, s.failure))
	}
	size, unlabelled, open := 0, false, false
	for _, g := range s.guards {
		if slices.ContainsFunc(cluster, func(c protection.Guard) bool { return reflect.DeepEqual(c, g) }) {
			continue
		}
		if protection.IsAdministered(g.Group, g.Resource) {
			left = append(left, fmt.Sprintf("a guard of namespace %s is left out: %s are for bundles of the cluster alone", namespace, name(g.Group, g.Resource)))
			continue
		}
		if len(own) == mostOwn {
			left = append(left, fmt.Sprintf("guards of namespace %s are left out: it may have %d", namespace, mostOwn))
			break
		}
		g.Namespaces = []string{namespace}
		if g.FailsClosed() {
			g.FailurePolicy, open = "", true
		}
		if size += len(labelled(g.Labels)); size > longestOwn {
			g.Labels, unlabelled = nil, true
		}
		own = append(own, g)
	}
	if open {
		left = append(left, fmt.Sprintf("failurePolicy Fail of guards of namespace %s is left out: only bundles of the cluster may have requests refused while no manager answers", namespace))
	}
	if unlabelled {
		left = append(left, fmt.Sprintf("labels of guards of namespace %s are left out, so more is asked about: they are longer than %d characters together", namespace, longestOwn))
	}
	return own, left
}
