// SPDX-License-Identifier: Apache-2.0

// Package webhookconfig writes the webhook configurations of protection: which requests the
// API server sends to the manager. They cover the objects that a policy protects (the decision
// protection/guards), in the namespaces concerned, limited by conditions that the API server evaluates
// itself. One replica writes them; every replica can look up how a kind is protected.
//
// The pods that SidecarSets may concern are the exception, and those of namespaces with
// WorkloadSpreads and PersistentPodStates. Any replica can make the API server send these pods. It
// writes a claim into the configuration before the object is written, with entries that send more
// pods than before, never fewer. The leader keeps a claim until it has seen the object, or for two
// minutes. Only the leader reduces what is sent, by the objects in the API server and not in its
// cache. Both write only if the configuration has not changed since they read it. While there are
// claims, pods are sent to a path with a token, by which a replica looks up the objects that its
// cache may not have.
package webhookconfig

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// Rules has the last answer to protection/guards.
type Rules struct {
	engine *engine.Engine
	gates  protection.Gates

	mu       sync.Mutex
	asked    string // the revision of the policies that were asked last
	answered bool
	last     protection.GuardsOutput
	failure  string

	owners sync.Mutex // separate, since Kind must not wait for policies of namespaces
	said   map[string]said
}

// NewRules asks the policies of an engine.
func NewRules(e *engine.Engine, gates protection.Gates) *Rules {
	return &Rules{engine: e, gates: gates}
}

// Answer is the answer of the policies, and how far it can be relied on.
type Answer struct {
	protection.GuardsOutput
	// Known is false if the policies have never answered.
	Known bool
	// Failure says why the newest policies gave no answer, so that this is an earlier answer; empty if
	// they did.
	Failure string
	// Left says which guards of namespaces could not be granted.
	Left []string
	// Unknown are the namespaces whose policies have never answered this process. The guards that another process wrote for
	// them stay.
	Unknown []string
}

// CurrentAnswer returns the answer of the active policies. They are evaluated once for each revision.
func (r *Rules) CurrentAnswer(ctx context.Context) Answer { return r.decideGuards(ctx, false) }

// RefreshAnswer evaluates policies that failed once more, and those of namespaces for the guards that
// only they have. The kinds that a canary adds are left out: they are protected once the canary is
// promoted.
func (r *Rules) RefreshAnswer(ctx context.Context) Answer {
	answer := r.decideGuards(ctx, true)
	own, unknown, left := r.namespaceGuards(ctx, answer.Guards)
	answer.Guards, answer.Unknown, answer.Left = slices.Concat(answer.Guards, own), unknown, left
	return answer
}

func (r *Rules) decideGuards(ctx context.Context, again bool) Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.engine.ActiveSnapshot().Revision(); now != r.asked || again && r.failure != "" {
		subject := decision.Subject{Kind: "ValidatingWebhookConfiguration", Name: ConfigurationName}
		// The first request may end before the answer arrives, and others wait for it.
		out, rec := engine.Decide(context.WithoutCancel(ctx), r.engine, protection.GuardsPoint(), subject, protection.GuardsInput{Gates: r.gates})
		r.asked, r.failure = now, ""
		if rec.Outcome == decision.Decided {
			r.last, r.answered = out, true
		} else {
			r.failure = string(rec.Outcome) + ": " + rec.Error
		}
	}
	return Answer{GuardsOutput: r.last, Known: r.answered, Failure: r.failure}
}

// Kind says how objects of a resource are protected by their label; nil if they
// are not. It is an error if no policy has ever answered.
func (r *Rules) Kind(ctx context.Context, group, resource string) (*protection.ProtectedKind, error) {
	if !r.gates.Deletion {
		return nil, nil
	}
	answer := r.CurrentAnswer(ctx)
	if !answer.Known {
		return nil, fmt.Errorf("asking which kinds are protected: %s", answer.Failure)
	}
	for _, k := range answer.Kinds {
		if k.Group == group && k.Resource == resource {
			return &k, nil
		}
	}
	return nil, nil
}

// FeatureGates are the feature gates that the policies get as input.
func (r *Rules) FeatureGates() protection.Gates { return r.gates }
