// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// ineffective is the rule that is reported for numbers that contradict each other.
const ineffective = "placement.allocation.ineffective"

// allocated is a decision of placement/allocation, with its input.
type allocated struct {
	in     placement.AllocationInput
	out    placement.AllocationOutput
	record decision.Record
	// held is the hold that leaves all subsets as they are, nil if there is none.
	held *placement.Hold
}

// decideAllocation evaluates how many pods each subset gets.
func (t *reconcileRound) decideAllocation(ctx context.Context) allocated {
	a := allocated{}
	in, err := t.buildAllocationInput()
	if err != nil {
		a.in = in
		a.out = placement.AllocationOutput{Holds: []placement.Hold{{Rule: ineffective, Reason: "Ineffective", Message: err.Error()}}}
	} else {
		a.in = in
		a.out, a.record = engine.Decide(ctx, t.r.Engine, placement.AllocationPoint(), decisionSubject(t.d), in)
		t.requeueWithin(requeue.DecisionDelay(a.record, t.now, a.out.RequeueTimes()...))
	}
	a.held, t.placement = a.out.GlobalHold(), a.out
	for i, n := range a.out.PermittedReplicas(a.in) {
		p := t.parts[i]
		p.replicas = int32(n) //nolint:gosec // the clamp keeps it within an int32
		p.partition = min(t.partitionOf(p), p.replicas)
		t.markGrownSubset(p)
	}
	return a
}

// keepsReplaced reports whether a held subset has children of another kind, and none of the template's kind.
func (t *reconcileRound) keepsReplaced(p *subsetState) bool {
	return p.child == nil && t.placement.HeldAt(p.Name) != nil && p.replaced > 0
}

// partitionOf is how many pods of a subset are to stay at the old revision (UD-08).
func (t *reconcileRound) partitionOf(p *subsetState) int32 {
	if update := t.d.Spec.UpdateStrategy.ManualUpdate; update != nil {
		return max(update.Partitions[p.Name], 0)
	}
	return 0
}

func decisionSubject(d *kruise.UnitedDeployment) decision.Subject {
	return facts.ObjectSubject(kruise.GroupVersion.Group, "UnitedDeployment", d)
}

// buildAllocationInput builds the input of placement/allocation. The error reports a number that cannot be read.
func (t *reconcileRound) buildAllocationInput() (placement.AllocationInput, error) {
	in := placement.AllocationInput{
		Now: t.now.UnixNano(), Strategy: t.strategy,
		Deployment: placement.UnitedDeployment{
			Name: t.d.Name, Namespace: t.d.Namespace, Created: t.d.CreationTimestamp.UnixNano(), Labels: t.d.Labels, Annotations: facts.VisibleAnnotations(t.d.Annotations),
		},
	}
	if t.d.Spec.Replicas != nil {
		n := int(*t.d.Spec.Replicas)
		in.Replicas = &n
	}
	var bad error
	for i, p := range t.parts {
		s := placement.Subset{
			Name: p.Name, Nodes: nodesOf(&p.NodeSelectorTerm), Current: p.currentReplicas(), Placed: p.placed, Reserved: p.reserved,
			Unschedulable: p.unschedulable, Marked: p.marked, Exists: p.child != nil,
		}
		if p.child != nil {
			s.Ready = int(p.child.ready)
		}
		number := func(field string, v *intstr.IntOrString) *int {
			if v == nil {
				return nil
			}
			n, err := budget.ResolveRounded(*v, t.d.Spec.Replicas)
			if err != nil && bad == nil {
				bad = fmt.Errorf("spec.topology.subsets[%d].%s of subset %s: %w", i, field, p.Name, err)
			}
			return &n
		}
		s.Given, s.Max = number("replicas", p.Replicas), number("maxReplicas", p.MaxReplicas)
		if least := number("minReplicas", p.MinReplicas); least != nil {
			s.Min = *least
		}
		in.Subsets = append(in.Subsets, s)
	}
	return in, bad
}

// nodesOf returns the values that a term requires of labels.
func nodesOf(term *corev1.NodeSelectorTerm) map[string][]string {
	out := map[string][]string{}
	for _, e := range term.MatchExpressions {
		if e.Operator == corev1.NodeSelectorOpIn {
			out[e.Key] = e.Values
		}
	}
	return out
}
