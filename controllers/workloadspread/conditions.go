// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/engine/decision"
)

// recoverAfter is how long a subset without room gets no pods.
const recoverAfter = 300 * time.Second

// updateSchedulable applies WS-08: it finds the subsets that have no room.
func (t *reconcileRound) updateSchedulable() {
	last := len(t.w.Spec.Subsets) - 1
	for i := range t.w.Spec.Subsets {
		if t.criticalDuration() == 0 {
			t.setSubsetCondition(i, nil)
			continue
		}
		c := condition.Condition{Type: kruise.WorkloadSpreadSubsetSchedulable, Status: metav1.ConditionTrue, Reason: kruise.WorkloadSpreadSufficientReason}
		was := t.previousCondition(i)
		marked := was != nil && was.Status == metav1.ConditionFalse && i != last
		var stuck []*corev1.Pod
		if i != last {
			stuck = t.findStuckPods(i)
		}
		switch {
		case len(stuck) > 0:
			t.stuck = append(t.stuck, stuck...)
			c.Status, c.Reason = metav1.ConditionFalse, kruise.WorkloadSpreadPodUnschedulableReason
			c.Message = fmt.Sprintf("Pods of subset %s found no node in %s.", t.w.Spec.Subsets[i].Name, t.criticalDuration())
			t.requeueWithin(recoverAfter)
		case marked && was.LastTransitionTime.Add(recoverAfter).After(t.now):
			c.Status, c.Reason, c.Message = was.Status, was.Reason, was.Message
			t.requeueWithin(was.LastTransitionTime.Add(recoverAfter).Sub(t.now) + time.Millisecond)
		case marked:
			t.recovered = append(t.recovered, t.w.Spec.Subsets[i].Name)
		}
		t.setSubsetCondition(i, &c)
	}
}

// previousCondition returns the condition of a subset before this round.
func (t *reconcileRound) previousCondition(i int) *metav1.Condition {
	for j := range t.w.Status.SubsetStatuses {
		if s := &t.w.Status.SubsetStatuses[j]; s.Name == t.w.Spec.Subsets[i].Name {
			return meta.FindStatusCondition(s.Conditions, kruise.WorkloadSpreadSubsetSchedulable)
		}
	}
	return nil
}

// setSubsetCondition sets the condition of a subset in all versions; nil removes it.
func (t *reconcileRound) setSubsetCondition(i int, c *condition.Condition) {
	var conditions []metav1.Condition
	if c != nil {
		if was := t.previousCondition(i); was != nil {
			conditions = []metav1.Condition{*was}
		}
		condition.SetCondition(&conditions, *c, 0, metav1.NewTime(t.now).Rfc3339Copy())
	}
	t.status.SubsetStatuses[i].Conditions = conditions
	for version := range t.status.VersionedSubsetStatuses {
		t.status.VersionedSubsetStatuses[version][i].Conditions = slices.Clone(conditions)
	}
}

// setPlacingCondition reports why new pods may be created without a subset, and which subsets are the cause.
func (t *reconcileRound) setPlacingCondition() {
	c := condition.Condition{Type: kruise.WorkloadSpreadPlacing, Status: metav1.ConditionTrue, Reason: kruise.WorkloadSpreadPlacingReason}
	full, ref := t.fullSubsets(), t.w.Spec.TargetReference
	switch {
	case t.target == nil:
		c.Status, c.Reason = metav1.ConditionFalse, kruise.WorkloadSpreadTargetNotFoundReason
		c.Message = fmt.Sprintf("There is no %s %s in namespace %s.", ref.Kind, ref.Name, t.w.Namespace)
	case len(full) == len(t.w.Spec.Subsets):
		c.Status, c.Reason = metav1.ConditionFalse, kruise.WorkloadSpreadSubsetsFullReason
		c.Message = fmt.Sprintf("All subsets are full or without room (%s), so new pods are created as they are.", message.ListNames(full))
	case len(t.unknown) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, kruise.WorkloadSpreadUnknownSubsetReason
		var names []string
		for _, name := range slices.Sorted(maps.Keys(t.unknown)) {
			names = append(names, fmt.Sprintf("%d of %s", t.unknown[name], name))
		}
		c.Message = fmt.Sprintf("Some pods are of subsets that the spec does not have: %s. They go first at scale in.", message.ListNames(names))
	case len(t.nowhere) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, kruise.WorkloadSpreadNoNodesReason
		c.Message = fmt.Sprintf("No node has the labels that these subsets require, so their pods wait: %s.", message.ListNames(t.nowhere))
	case len(t.late) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, kruise.WorkloadSpreadPodUnschedulableReason
		c.Message = fmt.Sprintf("Pods of these subsets have found no node for %s, so they wait: %s.", patience, message.ListNames(t.late))
	case t.target != nil && len(t.target.UID) > 0 && !condition.HasCondition(&t.status, kruise.WorkloadSpreadPlacing):
		return // nothing is wrong, and never was
	}
	condition.SetCondition(&t.status, c, t.w.Generation, metav1.NewTime(t.now).Rfc3339Copy())
}

// summarizePlacing returns what the conditions of package kstatus say. A workload that does not exist yet is nothing to wait for: a GitOps
// tool may create it once the spread is ready.
func (t *reconcileRound) summarizePlacing() kstatus.Summary {
	c, is := condition.FindCondition(&t.status, kruise.WorkloadSpreadPlacing)
	switch {
	case !is || c.Status == metav1.ConditionTrue:
		return kstatus.NewReady(kruise.WorkloadSpreadPlacingReason, "New pods are placed in the subsets.")
	case c.Reason == kruise.WorkloadSpreadTargetNotFoundReason:
		return kstatus.NewReady(c.Reason, c.Message)
	}
	return kstatus.NewReconciling(c.Reason, c.Message)
}

// fullSubsets returns the subsets that take no more pods.
func (t *reconcileRound) fullSubsets() (out []string) {
	for i := range t.status.SubsetStatuses {
		s := &t.status.SubsetStatuses[i]
		c := meta.FindStatusCondition(s.Conditions, kruise.WorkloadSpreadSubsetSchedulable)
		if s.MissingReplicas == 0 && t.target != nil && int(s.Replicas) < t.target.Replicas || c != nil && c.Status == metav1.ConditionFalse {
			out = append(out, s.Name)
		}
	}
	return out
}

// isSameStatus compares statuses.
func isSameStatus(a, b *kruise.WorkloadSpreadStatus) bool { return equality.Semantic.DeepEqual(a, b) }

// explanation explains where the pods of a spread are.
type explanation struct {
	subject decision.Subject
	now     time.Time
	subsets []explain.Subset
	of      map[string]int // by pod
}

// storeExplanation keeps the places of pods, so that users can ask for an explanation.
func (t *reconcileRound) storeExplanation() {
	e := &explanation{
		subject: facts.ObjectSubject(kruise.GroupVersion.Group, "WorkloadSpread", t.w),
		now:     t.now, of: map[string]int{},
	}
	for i := range t.status.SubsetStatuses {
		s := &t.status.SubsetStatuses[i]
		limit := "no limit"
		if t.limits[i] != nil {
			limit = fmt.Sprintf("at most %d", *t.limits[i])
		}
		if c := meta.FindStatusCondition(s.Conditions, kruise.WorkloadSpreadSubsetSchedulable); c != nil && c.Status == metav1.ConditionFalse {
			limit += "; its pods find no node"
		}
		e.subsets = append(e.subsets, explain.Subset{Name: s.Name, Replicas: int(s.Replicas), Rule: "placement.subset", Message: limit})
	}
	for _, pod := range t.pods {
		if i := t.part[pod.UID]; i != none {
			e.of[pod.Name] = i
		}
	}
	t.r.Rounds.PutRound(e.subject, e)
}

// ExplainWorkload implements explain.Round.
func (e *explanation) ExplainWorkload() explain.Answer {
	return explain.Answer{
		Subject: e.subject, Workload: e.subject, Decided: e.now, Verdict: explain.Placed, Reason: "Spread",
		Message: fmt.Sprintf("%d pods are in its subsets.", len(e.of)), Subsets: e.subsets,
	}
}

// ExplainPlacement implements explain.RoundWithPlacements.
func (e *explanation) ExplainPlacement(pod string) (explain.Answer, bool) {
	i, ok := e.of[pod]
	if !ok {
		return explain.Answer{}, false
	}
	a := e.ExplainWorkload()
	s := e.subsets[i]
	a.Subject = decision.Subject{Kind: "Pod", Namespace: e.subject.Namespace, Name: pod}
	a.Reason, a.Rule, a.Subsets = "Subset", s.Rule, nil
	a.Message = fmt.Sprintf("It is in subset %s of WorkloadSpread %s, which has %d pods (%s). A new pod goes to the first subset that has room.", s.Name, e.subject.Name, s.Replicas, s.Message)
	return a, true
}

// ExplainPod implements explain.Round: the workload explains its pods.
func (e *explanation) ExplainPod(string, string) (explain.Answer, bool) {
	return explain.Answer{}, false
}

// ExplainPods implements explain.Round.
func (e *explanation) ExplainPods() []explain.Answer { return nil }

// CountBytes implements explain.Round.
func (e *explanation) CountBytes() int {
	n := 1 << 10
	for _, s := range e.subsets {
		n += 128 + len(s.Name) + len(s.Message)
	}
	for pod := range e.of {
		n += 64 + len(pod)
	}
	return n
}
