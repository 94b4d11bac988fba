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
	"github.com/regatta-sh/regatta/controllers/gatedkinds"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/engine/decision"
)

// recoverAfter is how long a subset without room gets no pods.
const recoverAfter = 300 * time.Second

// schedule is WS-08: which subsets have no room.
func (t *round) schedule() {
	last := len(t.w.Spec.Subsets) - 1
	for i := range t.w.Spec.Subsets {
		if t.critical() == 0 {
			t.condition(i, nil)
			continue
		}
		c := metav1.Condition{Type: kruise.WorkloadSpreadSubsetSchedulable, Status: metav1.ConditionTrue, Reason: kruise.WorkloadSpreadSufficientReason}
		was := t.was(i)
		marked := was != nil && was.Status == metav1.ConditionFalse && i != last
		var stuck []*corev1.Pod
		if i != last {
			stuck = t.find(i)
		}
		switch {
		case len(stuck) > 0:
			t.stuck = append(t.stuck, stuck...)
			c.Status, c.Reason = metav1.ConditionFalse, kruise.WorkloadSpreadPodUnschedulableReason
			c.Message = message.Shorten(fmt.Sprintf("Pods of subset %s found no node in %s.", t.w.Spec.Subsets[i].Name, t.critical()))
			t.sooner(recoverAfter)
		case marked && was.LastTransitionTime.Add(recoverAfter).After(t.now):
			c = *was
			t.sooner(was.LastTransitionTime.Add(recoverAfter).Sub(t.now) + time.Millisecond)
		case marked:
			t.recovered = append(t.recovered, t.w.Spec.Subsets[i].Name)
		}
		t.condition(i, &c)
	}
}

// was is the condition of a subset as it was.
func (t *round) was(i int) *metav1.Condition {
	for j := range t.w.Status.SubsetStatuses {
		if s := &t.w.Status.SubsetStatuses[j]; s.Name == t.w.Spec.Subsets[i].Name {
			return meta.FindStatusCondition(s.Conditions, kruise.WorkloadSpreadSubsetSchedulable)
		}
	}
	return nil
}

// condition sets the condition of a subset in all versions; nil for none.
func (t *round) condition(i int, c *metav1.Condition) {
	var conditions []metav1.Condition
	if c != nil {
		at := metav1.NewTime(t.now).Rfc3339Copy()
		if was := t.was(i); was != nil && was.Status == c.Status {
			at = was.LastTransitionTime
		}
		c.LastTransitionTime = at
		conditions = []metav1.Condition{*c}
	}
	t.status.SubsetStatuses[i].Conditions = conditions
	for version := range t.status.VersionedSubsetStatuses {
		t.status.VersionedSubsetStatuses[version][i].Conditions = slices.Clone(conditions)
	}
}

// conditions tell why new pods may be created as they are, and which subset that is about.
func (t *round) conditions() {
	meta.RemoveStatusCondition(&t.status.Conditions, gatedkinds.Stalled)
	c := metav1.Condition{
		Type: kruise.WorkloadSpreadPlacing, Status: metav1.ConditionTrue, Reason: kruise.WorkloadSpreadPlacingReason, ObservedGeneration: t.w.Generation,
		LastTransitionTime: metav1.NewTime(t.now).Rfc3339Copy(),
	}
	full, ref := t.full(), t.w.Spec.TargetReference
	switch {
	case t.target == nil:
		c.Status, c.Reason = metav1.ConditionFalse, kruise.WorkloadSpreadTargetNotFoundReason
		c.Message = message.Shorten(fmt.Sprintf("There is no %s %s in namespace %s.", ref.Kind, ref.Name, t.w.Namespace))
	case len(full) == len(t.w.Spec.Subsets):
		c.Status, c.Reason = metav1.ConditionFalse, kruise.WorkloadSpreadSubsetsFullReason
		c.Message = message.Shorten(fmt.Sprintf("All subsets are full or without room (%s), so new pods are created as they are.", message.ListNames(full)))
	case len(t.unknown) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, kruise.WorkloadSpreadUnknownSubsetReason
		var names []string
		for _, name := range slices.Sorted(maps.Keys(t.unknown)) {
			names = append(names, fmt.Sprintf("%d of %s", t.unknown[name], name))
		}
		c.Message = message.Shorten(fmt.Sprintf("Some pods are of subsets that the spec does not have: %s. They go first at scale in.", message.ListNames(names)))
	case len(t.nowhere) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, kruise.WorkloadSpreadNoNodesReason
		c.Message = message.Shorten(fmt.Sprintf("No node has the labels that these subsets require, so their pods wait: %s.", message.ListNames(t.nowhere)))
	case len(t.late) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, kruise.WorkloadSpreadPodUnschedulableReason
		c.Message = message.Shorten(fmt.Sprintf("Pods of these subsets have found no node for %s, so they wait: %s.", patience, message.ListNames(t.late)))
	case t.target != nil && len(t.target.UID) > 0 && t.status.Conditions == nil:
		return // all is as it should be, and always was
	}
	meta.SetStatusCondition(&t.status.Conditions, c)
}

// full are the subsets that take no more pods.
func (t *round) full() (out []string) {
	for i := range t.status.SubsetStatuses {
		s := &t.status.SubsetStatuses[i]
		c := meta.FindStatusCondition(s.Conditions, kruise.WorkloadSpreadSubsetSchedulable)
		if s.MissingReplicas == 0 && t.target != nil && int(s.Replicas) < t.target.Replicas || c != nil && c.Status == metav1.ConditionFalse {
			out = append(out, s.Name)
		}
	}
	return out
}

// same compares statuses.
func same(a, b *kruise.WorkloadSpreadStatus) bool { return equality.Semantic.DeepEqual(a, b) }

// account explains where the pods of a spread are.
type account struct {
	subject decision.Subject
	now     time.Time
	subsets []explain.Subset
	of      map[string]int // by pod
}

// explain keeps where pods are for those who ask why.
func (t *round) explain() {
	e := &account{
		subject: decision.Subject{Group: kruise.GroupVersion.Group, Kind: "WorkloadSpread", Namespace: t.w.Namespace, Name: t.w.Name, UID: string(t.w.UID)},
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
	t.r.rounds.Put(e.subject, e)
}

// Workload implements explain.Round.
func (e *account) Workload() explain.Answer {
	return explain.Answer{
		Subject: e.subject, Workload: e.subject, Decided: e.now, Verdict: explain.Placed, Reason: "Spread",
		Message: fmt.Sprintf("%d pods are in its subsets.", len(e.of)), Subsets: e.subsets,
	}
}

// Placed implements explain.Placer.
func (e *account) Placed(pod string) (explain.Answer, bool) {
	i, ok := e.of[pod]
	if !ok {
		return explain.Answer{}, false
	}
	a := e.Workload()
	s := e.subsets[i]
	a.Subject = decision.Subject{Kind: "Pod", Namespace: e.subject.Namespace, Name: pod}
	a.Reason, a.Rule, a.Subsets = "Subset", s.Rule, nil
	a.Message = fmt.Sprintf("It is in subset %s of WorkloadSpread %s, which has %d pods (%s). A new pod goes to the first subset that has room.", s.Name, e.subject.Name, s.Replicas, s.Message)
	return a, true
}

// Pod implements explain.Round: the workload explains its pods.
func (e *account) Pod(string, string) (explain.Answer, bool) { return explain.Answer{}, false }

// Pods implements explain.Round.
func (e *account) Pods() []explain.Answer { return nil }

// CountBytes implements explain.Round.
func (e *account) CountBytes() int {
	n := 1 << 10
	for _, s := range e.subsets {
		n += 128 + len(s.Name) + len(s.Message)
	}
	for pod := range e.of {
		n += 64 + len(pod)
	}
	return n
}
