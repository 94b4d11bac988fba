// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"cmp"
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
// object for all of them: an object may have 1.5 MB, and the API server refuses a larger one, with the
// rules of all.
const (
	// mostOwn is how many guards one namespace may have.
	mostOwn = 20
	// longestOwn is how long their conditions may be together; beyond it labels are left out, so that more
	// requests are sent.
	longestOwn = 4000
	// longestOwned is how many bytes the unchanged guards of all namespaces may add. Beyond it, guards
	// about one resource are merged into one, without labels, for all their namespaces.
	longestOwned = 700_000
	// longestShared is how many bytes the merged guards may add. Beyond it they are for all namespaces,
	// and guards of further resources are left out, from the namespaces with the most guards.
	longestShared = 250_000
	// guardBytes is how many bytes a guard adds besides its names and its condition.
	guardBytes = 400
)

// said is the last answer of the policies of a namespace.
type said struct {
	revision string // of the policies that were evaluated
	answered bool   // they have answered, now or before
	guards   []protection.Guard
	failure  string
}

// namespaceGuards returns the guards of policies of namespaces that the cluster's policies do not
// have, each limited to its namespace. unknown are the namespaces whose policies have never answered
// this process. left says why some guards were changed or left out.
func (r *Rules) namespaceGuards(ctx context.Context, cluster []protection.Guard) (guards []protection.Guard, unknown, left []string) {
	r.owners.Lock()
	defer r.owners.Unlock()
	snapshot := r.engine.ActiveSnapshot()
	namespaces := snapshot.NamespacesWithBundles()
	maps.DeleteFunc(r.said, func(ns string, _ said) bool { return !slices.Contains(namespaces, ns) })
	all := make([]ownGuards, 0, len(namespaces))
	for _, ns := range namespaces {
		last := r.decideNamespace(ctx, snapshot, ns)
		if !last.answered {
			unknown = append(unknown, ns)
		}
		own, why := boundGuards(ns, last, cluster)
		all, left = append(all, ownGuards{ns, own}), append(left, why...)
	}
	guards, why := boundTogether(all)
	return guards, unknown, append(left, why...)
}

// ownGuards are the guards of a namespace.
type ownGuards struct {
	namespace string
	guards    []protection.Guard
}

func (o ownGuards) totalBytes() (sum int) {
	for _, g := range o.guards {
		sum += bytesOf(g)
	}
	return sum
}

// bytesOf estimates how many bytes a guard adds to the configuration.
func bytesOf(g protection.Guard) int {
	return guardBytes + 2*len(g.Group) + 2*len(g.Resource) + len(guardCondition(g))
}

// sharedGuards are guards that several namespaces share, one for each resource.
type sharedGuards struct {
	most   int // bytes that they may add
	guards []protection.Guard
	at     map[[2]string]int // by group and resource
	bytes  int
}

// addGuard merges a guard into the one of its resource, and reports whether there is room for it.
func (s *sharedGuards) addGuard(g protection.Guard) bool {
	key := [2]string{g.Group, g.Resource}
	i, known := s.at[key]
	if !known {
		add := bytesOf(protection.Guard{Group: g.Group, Resource: g.Resource}) + len(inNamespaces)
		if s.bytes+add > s.most {
			return false
		}
		if i = len(s.guards); i == 0 {
			s.at = map[[2]string]int{}
		}
		s.at[key], s.bytes = i, s.bytes+add
		s.guards = append(s.guards, protection.Guard{Group: g.Group, Resource: g.Resource, Operations: slices.Clone(g.Operations), Namespaces: slices.Clone(g.Namespaces)})
		s.bytes += bytesOfNames(g.Namespaces)
	} else {
		at := &s.guards[i]
		for _, op := range g.Operations {
			if !slices.Contains(at.Operations, op) {
				at.Operations = append(at.Operations, op)
			}
		}
		if len(at.Namespaces) > 0 && !slices.Contains(at.Namespaces, g.Namespaces[0]) {
			at.Namespaces, s.bytes = append(at.Namespaces, g.Namespaces[0]), s.bytes+bytesOfNames(g.Namespaces)
		}
	}
	if at := &s.guards[i]; s.bytes > s.most || bytesOfNames(at.Namespaces) > longestCondition/2 {
		s.bytes -= bytesOfNames(at.Namespaces)
		at.Namespaces = nil // all namespaces
	}
	return true
}

func bytesOfNames(namespaces []string) (sum int) {
	for _, ns := range namespaces {
		sum += len(ns) + len(", ''")
	}
	return sum
}

// boundTogether returns the guards of all namespaces, within the bounds. The namespaces with the
// fewest guards come first, so that a namespace with many guards does not take the room of others.
func boundTogether(all []ownGuards) (guards []protection.Guard, left []string) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b ownGuards) int { return cmp.Compare(a.totalBytes(), b.totalBytes()) })
	size, wider, lacking, first := 0, 0, 0, ""
	shared := sharedGuards{most: longestShared}
	for _, own := range all {
		if size += own.totalBytes(); size <= longestOwned {
			guards = append(guards, own.guards...)
			continue
		}
		wider++
		for _, g := range own.guards {
			if !shared.addGuard(g) {
				lacking, first = lacking+1, cmp.Or(first, own.namespace)
			}
		}
	}
	guards = append(guards, shared.guards...)
	if wider > 0 {
		left = append(left, fmt.Sprintf("labels of guards of %d namespaces are left out, so more is asked about: the guards of all namespaces have more than %d bytes together", wider, longestOwned))
	}
	if lacking > 0 {
		left = append(left, fmt.Sprintf("%d guards of namespace %s and others with many are left out: those of all namespaces are too long together", lacking, first))
	}
	return guards, left
}

// decideNamespace evaluates the policies of a namespace, once for each revision unless they failed. If
// they do not answer, their earlier answer stays.
func (r *Rules) decideNamespace(ctx context.Context, snapshot *engine.Snapshot, namespace string) said {
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

// boundGuards returns the guards that only a namespace has, within its bounds.
func boundGuards(namespace string, s said, cluster []protection.Guard) (own []protection.Guard, left []string) {
	if s.failure != "" {
		left = append(left, fmt.Sprintf("the policies of namespace %s could not decide what they are asked about, so it stays as it was: %s", namespace, s.failure))
	}
	size, unlabelled, open := 0, false, false
	for _, g := range s.guards {
		if slices.ContainsFunc(cluster, func(c protection.Guard) bool { return reflect.DeepEqual(c, g) }) {
			continue
		}
		if protection.IsAdministered(g.Group, g.Resource) {
			left = append(left, fmt.Sprintf("a guard of namespace %s is left out: %s are for bundles of the cluster alone", namespace, kubectlName(g.Group, g.Resource)))
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
		if size += len(labelsCondition(g.Labels)); size > longestOwn {
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
