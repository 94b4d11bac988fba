// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Facts are what a round knows before it decides. They do not change. After pods
// were written there are new Facts, see Round.updateFacts.
type Facts struct {
	Spec
	// Workload is the object as it was read.
	Workload client.Object
	Subject  decision.Subject
	Now      time.Time
	// Policies is the revision of the policies that decide; Bundles are the bundles in it.
	Policies string
	Bundles  []string

	Templates Templates
	// Pods are the active pods, sorted by name, or by node for kinds with Type.NodeOf. Gone are finished or
	// terminating pods.
	Pods []*facts.Pod
	Gone []*corev1.Pod
	// Difference is the difference of these pods from the spec.
	Difference UpdateDelta

	kind  Kind
	asked map[*facts.Pod]bool
	// bound is the filter of a KindWithCandidateFilter, nil for other kinds.
	bound func(*facts.Pod) bool
	// namespaceLabels are the labels of the namespace; missing are the facts of the workload that could not be read.
	namespaceLabels map[string]string
	missing         []decision.MissingFact
	// restarting are the names of pods that are restarting in place, or are about to.
	restarting map[string]bool
}

// dimensions by which pods are grouped.
const (
	zone   = "zone"
	region = "region"
)

// IsRollback reports whether pods are moved back to the current revision.
func (f *Facts) IsRollback() bool { return f.Difference.Update < 0 }

// TargetRevision is the name of the revision that pods are moved to. It is the current revision only if the
// difference requires a rollback.
func (f *Facts) TargetRevision() string {
	if f.IsRollback() {
		return f.Templates.CurrentRevision()
	}
	return f.Templates.UpdateRevision()
}

// IsAvailable reports whether a pod is available (CS-02).
func (f *Facts) IsAvailable(p *facts.Pod) bool {
	if guest, ok := f.kind.(KindWithSharedPods); ok {
		return guest.IsAvailable(f.Workload, p)
	}
	return p.IsAvailable(f.MinReady, f.Now)
}

// DeletionAsked reports whether a user asked for the deletion of a pod.
func (f *Facts) DeletionAsked(p *facts.Pod) bool { return f.asked[p] }

// IsLeaving reports whether the deletion of a pod is requested or prepared.
func (f *Facts) IsLeaving(p *facts.Pod) bool {
	return f.asked[p] || p.State == kruise.LifecycleStatePreparingDelete
}

// AtTarget reports whether a pod has the revision that it is to have. For a pod of the current
// revision that is also true if the partition keeps as many pods as there are. Such a pod may have prepared
// its update before others took its place. Its traffic is drained, and it would wait indefinitely for an update
// that does not come.
func (f *Facts) AtTarget(p *facts.Pod) bool {
	return f.Templates.HasRevision(p.Pod, f.TargetRevision()) || (f.Difference.Settled && !p.Facts.Updated)
}

// CanMove reports whether a pod may be moved at all; see KindWithCandidateFilter.
func (f *Facts) CanMove(p *facts.Pod) bool { return f.bound == nil || f.bound(p) }

// IsCandidate reports whether a pod is not at its target and may be moved (CS-08). A pod that
// waits for its recreation was taken before, so it is not a candidate.
func (f *Facts) IsCandidate(p *facts.Pod) bool {
	if p.Facts.Updated != f.IsRollback() || f.IsLeaving(p) {
		return false
	}
	if !f.CanMove(p) {
		return false
	}
	if _, ok := f.kind.(KindWithSharedPods); ok {
		return true // the in-place updates of the pod's owner do not matter
	}
	return p.State == kruise.LifecycleStateUpdated || !inplace.InGrace(p.Pod)
}

// CountCandidates counts the candidates.
func (f *Facts) CountCandidates() int { return len(f.candidatePods()) }

// isCondemned reports whether a pod is surplus: no replica needs it any more.
func (f *Facts) isCondemned(p *facts.Pod) bool {
	return f.Difference.Condemned != nil && f.Difference.Condemned(p)
}

// isRecreating reports whether a pod that is not at its target is about to be deleted.
func (f *Facts) isRecreating(p *facts.Pod) bool {
	return p.Facts.Updated == f.IsRollback() && p.State != kruise.LifecycleStatePreparingDelete && f.asked[p]
}

// countUnavailable counts the unavailable pods before the walk. A pod that waits for its deletion was
// taken before, though it still exists, so no other available pod may be taken in its room. A pod that
// is unavailable in any case may be taken, or each could wait for the other.
func (f *Facts) countUnavailable() (u selection.Unavailable, recreating int) {
	if f.Difference.Unavailable != nil {
		return *f.Difference.Unavailable, 0
	}
	if missing := f.Difference.Missing; missing != nil {
		u = *missing
	}
	for _, p := range f.Pods {
		if f.isCondemned(p) {
			continue
		}
		atTarget, going := p.Facts.Updated != f.IsRollback(), f.isRecreating(p)
		incrementIf(&recreating, going)
		switch {
		case !f.IsSteady(p): // or its restart is under way
			u.Total++
			incrementIf(&u.AtTarget, atTarget || going)
		case going:
			u.Total++
		}
	}
	return u, recreating
}

// PlanInput builds the input of rollout/plan.
func (f *Facts) PlanInput() points.PlanInput {
	return points.PlanInput{
		Now: f.Now.UnixNano(), Workload: f.WorkloadFacts(), Strategy: f.Strategy, Revisions: f.RevisionNames(), Counts: f.CountPods(),
		Update: f.Difference.Update, MaxUnavailable: f.Difference.MaxUnavailable,
		Groups: f.CountGroups(),
	}
}

// ScaleInput builds the common part of the input of rollout/scale; the kind completes it.
func (f *Facts) ScaleInput() points.ScaleInput {
	return points.ScaleInput{Now: f.Now.UnixNano(), Workload: f.WorkloadFacts(), Strategy: f.Strategy, Revisions: f.RevisionNames(), Counts: f.CountPods()}
}

// DeletionFacts are the facts for rollout/scale of a pod that may be deleted.
func (f *Facts) DeletionFacts(p *facts.Pod) points.VictimFacts {
	v := points.VictimFacts{PodFacts: p.Facts}
	incrementIf(&v.Available, f.IsAvailable(p))
	return v
}

// CountGroups counts the pods by zone and by region.
func (f *Facts) CountGroups() map[string]map[string]points.Group {
	out := map[string]map[string]points.Group{zone: {}, region: {}}
	for _, p := range f.Pods {
		for dimension, value := range groupsOf(p) {
			g := out[dimension][value]
			g.Total++
			incrementIf(&g.Updated, p.Facts.Updated)
			incrementIf(&g.Unavailable, !f.IsAvailable(p))
			out[dimension][value] = g
		}
	}
	return out
}

func groupsOf(p *facts.Pod) map[string]string {
	return map[string]string{zone: p.Facts.Zone, region: p.Facts.Region}
}

// RevisionNames are the names of the two revisions of the rollout.
func (f *Facts) RevisionNames() points.Revisions {
	return points.Revisions{Current: f.Templates.CurrentRevision(), Update: f.Templates.UpdateRevision()}
}

// CountPods counts the pods by their state.
func (f *Facts) CountPods() points.Counts {
	c := points.Counts{Total: len(f.Pods)}
	for _, p := range f.Gone {
		incrementIf(&c.Terminating, p.DeletionTimestamp != nil)
	}
	for _, p := range f.Pods {
		available := f.IsAvailable(p)
		incrementIf(&c.Ready, p.Ready)
		incrementIf(&c.Available, available)
		incrementIf(&c.Unavailable, !available)
		incrementIf(&c.Updated, p.Facts.Updated)
		incrementIf(&c.UpdatedReady, p.Facts.Updated && p.Ready)
		incrementIf(&c.UpdatedAvail, p.Facts.Updated && available)
		preparing := p.State == kruise.LifecycleStatePreparingDelete
		incrementIf(&c.PreparingDelete, preparing)
		incrementIf(&c.SpecifiedDelete, !preparing && f.asked[p])
	}
	return c
}

func incrementIf(n *int, yes bool) {
	if yes {
		*n++
	}
}

// WorkloadFacts are the facts of the workload that policies read.
func (f *Facts) WorkloadFacts() points.Workload {
	return points.Workload{
		Kind: f.Subject.Kind, Namespace: f.Subject.Namespace, Name: f.Subject.Name, UID: f.Subject.UID,
		Replicas: f.Replicas, Labels: f.Workload.GetLabels(), Annotations: facts.WorkloadAnnotations(f.Workload.GetAnnotations()),
		NamespaceLabels: f.namespaceLabels, MissingFacts: f.missing,
	}
}

// candidatePods returns the candidates.
func (f *Facts) candidatePods() []*facts.Pod {
	return slices.DeleteFunc(slices.Clone(f.Pods), func(p *facts.Pod) bool { return !f.IsCandidate(p) })
}
