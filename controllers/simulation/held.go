// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/invariant"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// invariantChecker records the answers of policies, from their decisions alone. It checks
// every write to a pod, which the simulation reports to it, against them and against what the kind promises.
type invariantChecker struct {
	s       *Simulation
	planned bool            // rollout/plan was evaluated in this round
	holds   []decision.Hold // its answer
	single  map[string]decision.Hold
	order   []string // of rollout/rows, if it was evaluated in this round
	rows    bool
	exempt  map[string]bool    // pods that a policy exempts from their budgets
	ignored map[types.UID]bool // pods that a budget ignores and has counted as available, in a Harness
	found   []Violation
}

// beginRound forgets holds of the last round. Holds of single pods are remembered,
// as the controller remembers them, until the pod is evaluated again.
func (j *invariantChecker) beginRound() {
	j.planned, j.holds, j.rows, j.order, j.exempt = false, nil, false, nil, map[string]bool{}
}

// RecordDecision implements engine.Sink.
func (j *invariantChecker) RecordDecision(r decision.Record) {
	switch out := r.Output.(type) {
	case rollout.PlanOutput:
		j.planned, j.holds = true, out.Holds
	case rollout.RowsOutput:
		j.rows, j.order = true, out.Order
	case protection.BudgetOutput:
		if in, ok := r.Input.(protection.BudgetInput); ok && out.Exempt {
			j.exempt[in.Object.Name] = true
		}
	case rollout.RankOutput:
		in, ok := r.Input.(rollout.RankInput)
		if !ok {
			return
		}
		for i := range in.Pods {
			delete(j.single, in.Pods[i].Name)
		}
		for _, h := range out.Holds {
			if _, ok := j.single[h.Pod]; !ok {
				j.single[h.Pod] = h
			}
		}
	}
}

// checkWrite checks a write to a pod.
func (j *invariantChecker) checkWrite(before invariant.Observation, was, now *corev1.Pod) {
	after := j.s.cluster.countPods()
	if why := j.s.cluster.witness.BrokenPromise(j.s.cluster.workload, before, after); why != "" {
		j.recordViolation("Promise", was, now, why)
	}
	if why := j.findOverdraw(was, now); why != "" {
		j.recordViolation("Budget", was, now, why)
	}
	if was == nil || !j.startsUpdate(before, was, now) {
		return
	}
	if h, held := j.heldBy(was); held {
		j.recordViolation("Held", was, now, fmt.Sprintf("is moved, though %s (%s) holds it: %s", h.Rule, h.Reason, h.Message))
	}
}

// startsUpdate reports whether a write starts the update of a pod to another revision.
func (j *invariantChecker) startsUpdate(before invariant.Observation, was, now *corev1.Pod) bool {
	_, marked := was.Labels[kruise.SpecifiedDeleteKey]
	state := func(p *corev1.Pod) kruise.LifecycleStateType {
		return kruise.LifecycleStateType(p.Labels[kruise.LifecycleStateKey])
	}
	going := j.s.cluster.kind.DeletionAsked(j.s.cluster.workload, was) || state(was) == kruise.LifecycleStatePreparingDelete
	if now == nil { // a surplus pod is deleted by scaling in, which no rollout holds
		return !going && before.Active <= j.s.workloadReplicas()
	}
	_, marks := now.Labels[kruise.SpecifiedDeleteKey]
	return was.Labels[revisionLabel] != now.Labels[revisionLabel] || (marks && !marked) ||
		(state(now) == kruise.LifecycleStatePreparingUpdate && state(was) != kruise.LifecycleStatePreparingUpdate)
}

// heldBy returns the hold of a pod, by the answers of policies.
func (j *invariantChecker) heldBy(p *corev1.Pod) (decision.Hold, bool) {
	if !j.planned {
		return decision.Hold{Rule: "rollout/plan", Reason: "NotAsked", Message: "no policy was asked in this round"}, true
	}
	labels := j.s.nodeLabels(p.Spec.NodeName)
	places := map[string]string{"zone": labels[corev1.LabelTopologyZone], "region": labels[corev1.LabelTopologyRegion]}
	for _, h := range j.holds {
		there := h.NamesPod(p.Namespace, p.Name)
		for dimension, group := range h.Where {
			there = there && places[dimension] == group
		}
		if there {
			return h, true
		}
	}
	if j.rows && !slices.Contains(j.order, p.Name) && !slices.Contains(j.order, p.Namespace+"/"+p.Name) {
		return decision.Hold{Rule: "rollout/rows", Reason: "NotInOrder", Message: "the policy that orders all left it out"}, true
	}
	h, ok := j.single[p.Name]
	return h, ok && h.NamesPod(p.Namespace, p.Name)
}

func (j *invariantChecker) recordViolation(kind string, was, now *corev1.Pod, message string) {
	what, p := writeDelete, was
	switch {
	case was == nil:
		what, p = writeCreate, now
	case now != nil:
		what = writeUpdate
	}
	j.found = append(j.found, Violation{At: j.s.now, Kind: kind, Write: what, Pod: p.Name, Message: message})
}
