// SPDX-License-Identifier: Apache-2.0

// Package webhookconfig writes the webhook configurations of protection: which requests the
// API server sends to the manager. They cover what a policy protects (the decision
// protection/guards), in the namespaces concerned, narrowed by conditions that the API
// server evaluates itself. One replica writes them; every replica can look up how a
// kind is protected.
//
// The pods that SidecarSets may concern are the exception, and those of namespaces with WorkloadSpreads and PersistentPodStates. Any
// replica has them sent, by a claim that it writes into the configuration before the object is written, with entries that send more
// than before and never less. The leader keeps what is claimed until it has seen the object, or for two minutes; only the leader has less sent, by what the API server has and not by
// its cache, and both write only over what they have read. While there are claims, pods come by a path that names them, by
// which a replica finds out what its cache may not have.
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

// Rules are the last answer to protection/guards.
type Rules struct {
	engine *engine.Engine
	gates  protection.Gates

	mu       sync.Mutex
	asked    string // the revision of the policies that were asked last
	answered bool
	last     protection.GuardsOutput
	failure  string

	owners sync.Mutex // apart, since Kind must not wait for policies of namespaces
	said   map[string]said
}

// NewRules asks the policies of an engine.
func NewRules(e *engine.Engine, gates protection.Gates) *Rules {
	return &Rules{engine: e, gates: gates}
}

// Answer is what the policies say, and how far it can be relied on.
type Answer struct {
	protection.GuardsOutput
	// Known is false if the policies have never said anything.
	Known bool
	// Failure says why the newest policies say nothing, so that this is what those
	// before said; it is empty if they do.
	Failure string
	// Left is what policies of namespaces wanted and could not have.
	Left []string
	// Unknown are the namespaces with policies that have never said anything to this process. What another process wrote for
	// them stays.
	Unknown []string
}

// CurrentAnswer is the answer of the policies that are active now. They are asked once
// for each revision.
func (r *Rules) CurrentAnswer(ctx context.Context) Answer { return r.decideGuards(ctx, false) }

// RefreshAnswer asks policies that failed to answer once more, and those of namespaces
// for what only they are about. The kinds that a canary adds are not among these:
// they are protected from when it is promoted.
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
		// The request that asks first may end before the answer comes, and others wait for it.
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
// are not. It is an error if no policy has ever said so.
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
