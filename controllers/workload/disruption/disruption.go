// SPDX-License-Identifier: Apache-2.0

// Package disruption evaluates rollout/plan and rollout/rank for controllers that have no rollout of their own. The answers decide which pods
// may be deleted, or have their template written: a policy that holds a rollout holds these as well.
package disruption

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Request is about the pods that a controller is about to disrupt.
type Request struct {
	Subject  decision.Subject
	Workload points.Workload
	Now      time.Time
	// Strategy is the strategy of the workload. If its type is empty, RollingUpdate is used.
	Strategy  points.Strategy
	Revisions points.Revisions
	// Pods are the pods that would be disrupted. Updated reports whether a pod has the update revision; if it is nil, none has.
	Pods    []*corev1.Pod
	Updated func(*corev1.Pod) bool
	// NamespaceLabels has the labels of each namespace of the pods, for a cluster-scoped workload, and UnknownNamespaces
	// why those of the others are missing.
	NamespaceLabels   map[string]map[string]string
	UnknownNamespaces map[string]decision.MissingFact
	// Topology has the nodes of the pods; see ReadNodes.
	Topology *facts.Topology
}

// Result says which pods may be disrupted now.
type Result struct {
	// Allowed keeps the order of Request.Pods.
	Allowed []*corev1.Pod
	// Held has the hold of each other pod.
	Held map[types.UID]decision.Hold
	// Whole is the hold of all pods, nil if there is none. If there are several, it is one that also holds new pods, if any does.
	Whole *decision.Hold
	// Again is when to evaluate again though nothing has changed; 0 for never.
	Again time.Duration
	// Records are the records of the decisions.
	Records []decision.Record
}

// TopHold is the first hold, nil if nothing is held.
func (a Result) TopHold() *decision.Hold {
	if a.Whole != nil {
		return a.Whole
	}
	var top *decision.Hold
	for _, h := range a.Held {
		if top == nil || cmp.Or(strings.Compare(h.Pod, top.Pod), strings.Compare(h.Namespace, top.Namespace)) < 0 {
			top = &h
		}
	}
	return top
}

// heldAgain is the time after which pods that a rule holds one by one are evaluated again.
const heldAgain = 30 * time.Second

// limitReason is the reason of a plan that allows no more disruptions now and names no hold.
const limitReason = "PlanLimit"

// EvaluatePods evaluates rollout/plan for all pods and rollout/rank for each. A decision that fails holds its pods.
func EvaluatePods(ctx context.Context, e *engine.Engine, q Request) Result {
	a := Result{Held: map[types.UID]decision.Hold{}}
	updated := q.Updated
	if updated == nil {
		updated = func(*corev1.Pod) bool { return false }
	}
	known := facts.NewSet()
	known.ObserveNamespaces(q.NamespaceLabels, q.UnknownNamespaces)
	pods := known.Update(q.Pods, facts.Terms{}, q.Topology, updated)
	in := q.planInput(pods)
	plan, rec := engine.Decide(ctx, e, points.PlanPoint(), q.Subject, in)
	a.recordDecision(rec, q.Now, plan.Holds)
	limit := selection.ClampPlan(in, plan).Limit
	if i := slices.IndexFunc(plan.Holds, ofNewPods); i >= 0 {
		a.Whole = &plan.Holds[i]
	} else if i := slices.IndexFunc(plan.Holds, decision.Hold.IsWholeWorkload); i >= 0 {
		a.Whole = &plan.Holds[i]
	} else if limit == 0 {
		a.Whole = limitHold(string(rec.Point))
	}
	if a.Whole != nil {
		for _, p := range pods {
			a.Held[p.UID] = a.Whole.OfPod(p.Namespace, p.Name)
		}
		return a
	}
	ranks := points.RankInput{Workload: in.Workload, Strategy: in.Strategy}
	for _, p := range pods {
		ranks.Pods = append(ranks.Pods, points.HidePodMissingFacts(p.Facts)) // they are held below
	}
	order, rec := engine.Decide(ctx, e, points.RankPoint(), q.Subject, ranks)
	a.recordDecision(rec, q.Now, order.Holds)
	holds := append(slices.Clone(plan.Holds), order.Holds...)
	if len(order.Holds) > 0 { // a rule may have looked at a node, and a change of a node starts no round of each caller
		a.Again = requeue.EarliestDelay(a.Again, heldAgain)
	}
	for i, p := range pods {
		if unknown := HoldOfMissingFact(e, q.Subject, p); unknown != nil {
			a.Held[p.UID] = *unknown
			a.Again = requeue.EarliestDelay(a.Again, heldAgain)
			continue
		}
		one := selection.Candidate{Pod: p.Key(), Groups: podGroups(p)}
		_, skipped := selection.WalkCandidates([]selection.Candidate{one}, holds, selection.Limits{Limit: 1, MaxUnavailable: 1}, selection.Unavailable{})
		switch {
		case len(skipped) > 0:
			a.Held[p.UID] = skipped[0].Hold.OfPod(p.Namespace, p.Name)
		case len(a.Allowed) >= limit:
			a.Held[p.UID] = limitHold(string(a.Records[0].Point)).OfPod(p.Namespace, p.Name)
		default:
			a.Allowed = append(a.Allowed, q.Pods[i])
		}
	}
	return a
}

// ofNewPods reports whether a hold of the whole workload also holds new pods.
func ofNewPods(h decision.Hold) bool {
	return h.IsWholeWorkload() && h.NewPods != decision.NewPodsUpdate
}

func (a *Result) recordDecision(rec decision.Record, now time.Time, holds []decision.Hold) {
	a.Records = append(a.Records, rec)
	untils := make([]string, len(holds))
	for i := range holds {
		untils[i] = holds[i].Until
	}
	a.Again = requeue.EarliestDelay(a.Again, requeue.DecisionDelay(rec, now, untils...))
}

func limitHold(point string) *decision.Hold {
	return &decision.Hold{Rule: point, Reason: limitReason, Message: "The plan lets no more pods be moved now."}
}

// planInput builds the input of rollout/plan. The limits let all of these pods be disrupted at once: they are unavailable, or a budget
// is checked for each. The input may be about a template that has no pods yet.
func (q Request) planInput(pods []*facts.Pod) points.PlanInput {
	in := points.PlanInput{
		Now: q.Now.UnixNano(), Workload: q.Workload, Strategy: q.Strategy, Revisions: q.Revisions,
		Update: max(len(pods), 1), MaxUnavailable: max(len(pods), 1), Counts: points.Counts{Total: len(pods)},
		Groups: map[string]map[string]points.Group{"zone": {}, "region": {}},
	}
	if in.Strategy.Type == "" {
		in.Strategy.Type, in.Strategy.MaxUnavailable, in.Strategy.ScaleMaxUnavailable = "RollingUpdate", len(pods), math.MaxInt32
	}
	for _, p := range pods {
		available := availability.IsAvailable(p.Pod)
		incrementIf(&in.Counts.Ready, p.Ready)
		incrementIf(&in.Counts.Available, available)
		incrementIf(&in.Counts.Unavailable, !available)
		incrementIf(&in.Counts.Updated, p.Facts.Updated)
		for dimension, value := range podGroups(p) {
			g := in.Groups[dimension][value]
			g.Total++
			incrementIf(&g.Updated, p.Facts.Updated)
			incrementIf(&g.Unavailable, !available)
			in.Groups[dimension][value] = g
		}
	}
	return in
}

func podGroups(p *facts.Pod) map[string]string {
	return map[string]string{"zone": p.Facts.Zone, "region": p.Facts.Region}
}

func incrementIf(n *int, yes bool) {
	if yes {
		*n++
	}
}

// ReadNodes reads the nodes of some pods. A node that is gone is not known, so its pods have a missing fact.
func ReadNodes(ctx context.Context, from client.Reader, pods []*corev1.Pod) (*facts.Topology, error) {
	out, known := facts.NewTopology(), map[string]bool{"": true}
	for _, p := range pods {
		if known[p.Spec.NodeName] {
			continue
		}
		known[p.Spec.NodeName] = true
		node := &corev1.Node{}
		switch err := from.Get(ctx, types.NamespacedName{Name: p.Spec.NodeName}, node); {
		case err == nil:
			out.ObserveNode(node)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading node %s of pod %s: %w", p.Spec.NodeName, p.Name, err)
		}
	}
	return out, nil
}
