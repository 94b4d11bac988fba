// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/agents"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// AgentMissingReason is the reason of a pod that waits because its node has no node agent at the moment.
const AgentMissingReason = "NodeAgentMissing"

// Change is how a pod is brought from its revision to its target, and the differences between them.
type Change struct {
	points.ChangeOutput
	Diff inplace.Difference
	// needsAgent is true if the answer depends on whether the node has a node agent.
	needsAgent bool
}

// waitHold is the hold of a pod that the answer makes wait.
func (c Change) waitHold(p *facts.Pod) decision.Hold {
	return decision.Hold{Rule: string(points.ChangePoint().Name), Reason: c.Reason, Message: c.Message}.OfPod(p.Namespace, p.Name)
}

// changeDecisions evaluates rollout/change once per round for each old revision. The answer is the same
// for all pods of that revision with the readiness gate, and for all without it. If only a
// node agent can do the restart, the answer also depends on whether the node has one. It is evaluated for each pod
// whose claims differ from their templates.
type changeDecisions struct {
	r     *Round
	f     *Facts
	known map[podChange]Change
	// services are the Services of each namespace, as they were first listed in the round.
	services map[string][]corev1.Service
}

// podChange is the part of a pod that an answer depends on.
type podChange struct {
	from      string
	ungated   bool
	agentless bool
	unserved  bool
	// claims is how the claims of the pod differ from their templates.
	claims string
}

func (c *changeDecisions) evaluatePod(ctx context.Context, p *facts.Pod) (Change, error) {
	unserved, err := c.isUnserved(ctx, p.Pod)
	if err != nil {
		return Change{}, err
	}
	claims := c.f.claimGrowth(p.Pod).Differ
	key := podChange{from: c.f.Templates.PodRevision(p.Pod), ungated: !inplace.HasGate(p.Pod), unserved: unserved}
	if len(claims) > 0 {
		key.claims = fmt.Sprint(claims)
	}
	got, err := c.evaluateOnce(ctx, key, claims)
	if err != nil || !got.needsAgent || c.r.c.agents == nil {
		return got, err
	}
	node := p.Spec.NodeName
	there, left, err := c.r.c.agents(ctx, node)
	switch {
	case err != nil:
		return Change{}, err
	case there:
		return got, nil
	case left > 0: // no pod is recreated because an agent is late
		return Change{ChangeOutput: points.ChangeOutput{
			Action: points.Wait, Reason: AgentMissingReason,
			Message: fmt.Sprintf("No node agent runs on node %s at the moment, and only one can restart containers for their env; the pod waits up to %s for it.", node, agents.Grace),
		}}, nil
	}
	key.agentless = true
	return c.evaluateOnce(ctx, key, claims)
}

// isUnserved reports whether it is certain that no Service selects a pod.
func (c *changeDecisions) isUnserved(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if !c.r.c.services {
		return false, nil
	}
	services, listed := c.services[pod.Namespace]
	if !listed {
		list := &corev1.ServiceList{}
		if err := c.r.c.Client.List(ctx, list, client.InNamespace(pod.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("listing Services: %w", err)
		}
		if c.services == nil {
			c.services = map[string][]corev1.Service{}
		}
		services, c.services[pod.Namespace] = list.Items, list.Items
	}
	return !slices.ContainsFunc(services, func(s corev1.Service) bool {
		return len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels))
	}), nil
}

// evaluateOnce evaluates the point once for all pods with the same answer.
func (c *changeDecisions) evaluateOnce(ctx context.Context, key podChange, claims []points.ClaimChange) (Change, error) {
	if got, ok := c.known[key]; ok {
		return got, nil
	}
	got, err := c.evaluateChange(ctx, key, c.f.TargetRevision(), claims)
	if err == nil {
		c.known[key] = got
	}
	return got, err
}

// EvaluateChange evaluates rollout/change: how pods with the readiness gate are brought from one revision to
// another.
func (r *Round) EvaluateChange(ctx context.Context, f *Facts, from, to string) (Change, error) {
	return (&changeDecisions{r: r, f: f}).evaluateChange(ctx, podChange{from: from}, to, nil)
}

func (c *changeDecisions) evaluateChange(ctx context.Context, key podChange, to string, claims []points.ClaimChange) (Change, error) {
	between, err := c.f.Templates.CompareRevisions(key.from, to)
	if err != nil {
		return Change{}, fmt.Errorf("comparing revisions: %w", err)
	}
	g := c.r.c.gates
	in := points.ChangeInput{
		Workload: c.f.WorkloadFacts(), Policy: c.f.Strategy.Policy, From: key.from, To: to, Known: between.Known,
		Changes:    append([]points.TemplateChange{}, between.Diff.Changes...),
		QoSChanged: between.QoSChanged, ClaimsChanged: between.ClaimsChanged, Claims: claims,
		EnvRefresh: between.EnvRefresh, Ungated: key.ungated, Unserved: key.unserved, RestartRequested: between.RestartRequested,
		Gates: points.ChangeGates{
			VerticalScaling: g.VerticalScaling, RecreateOnNewClaims: g.RecreateOnNewClaims,
			EnvFromMetadata: g.EnvFromMetadata, NodeAgent: g.NodeAgent && !key.agentless,
		},
	}
	out, _ := EvaluatePoint(ctx, c.r, c.f, points.ChangePoint(), in)
	out = clampChange(in, out)
	return Change{out, between.Diff, g.EnvFromMetadata && g.NodeAgent && len(between.EnvRefresh) > 0}, nil
}

// NotInPlaceReason is the reason of a pod that waits because the answer is InPlace but that
// change is not possible.
const NotInPlaceReason = "NotInPlace"

// clampChange clamps an answer to what is possible. Without both templates the change
// is unknown. If a difference could not be applied in place, the pod would have the label of a
// revision that it does not run.
func clampChange(in points.ChangeInput, out points.ChangeOutput) points.ChangeOutput {
	if out.Action != points.InPlace {
		return out
	}
	if !in.Known {
		return points.ChangePoint().FallbackAnswer(in, true)
	}
	for _, c := range in.Changes {
		if c.Class == points.ChangeImage || c.Class == points.ChangeMetadata || c.Class == points.ChangeResources && in.Gates.VerticalScaling {
			continue
		}
		return points.ChangeOutput{
			Action: points.Wait, Reason: NotInPlaceReason,
			Message: fmt.Sprintf("A policy answers InPlace, which cannot be done: found %s %s. The pod stays as it is until the policy or the template changes.", c.Op, c.Path),
		}
	}
	return out
}
