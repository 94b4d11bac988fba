// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Change is how a pod gets from its revision to its target, and what differs.
type Change struct {
	decision.ChangeOutput
	Diff inplace.Difference
}

// hold is why a pod waits for another answer.
func (c Change) hold(pod string) decision.Hold {
	return decision.Hold{Rule: string(decision.RolloutChange().Name), Reason: c.Reason, Message: c.Message, Pod: pod}
}

// changes asks rollout/change once a round for each old revision: the answer is the same
// for all pods of it.
type changes struct {
	r     *Round
	f     *Facts
	known map[string]Change
}

func (c changes) of(ctx context.Context, p *facts.Pod) (Change, error) {
	from, to := c.f.Templates.At(p.Pod), c.f.Target()
	if got, ok := c.known[from]; ok {
		return got, nil
	}
	between, err := c.f.Templates.Compare(from, to)
	if err != nil {
		return Change{}, fmt.Errorf("comparing revisions: %w", err)
	}
	g := c.r.c.gates
	in := decision.ChangeInput{
		Workload: c.f.WorkloadFacts(), Policy: c.f.Strategy.Policy, From: from, To: to, Known: between.Known,
		Changes:    append([]decision.TemplateChange{}, between.Diff.Changes...),
		QoSChanged: between.QoSChanged, ClaimsChanged: between.ClaimsChanged,
		EnvRefresh: between.EnvRefresh,
		Gates: decision.ChangeGates{
			VerticalScaling: g.VerticalScaling, RecreateOnNewClaims: g.RecreateOnNewClaims,
			EnvFromMetadata: g.EnvFromMetadata, NodeAgent: g.NodeAgent,
		},
	}
	out, _ := Ask(ctx, c.r, c.f, decision.RolloutChange(), in)
	if out.Action == decision.InPlace && !between.Known {
		// The clamp: without both templates there is nothing to change a pod by.
		out = decision.RolloutChange().Undecided(in, true)
	}
	c.known[from] = Change{out, between.Diff}
	return c.known[from], nil
}
