// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"
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

// Facts are what a round knows before anything is decided. They do not change; once
// pods were written there are new ones, see Round.with.
type Facts struct {
	Spec
	// Workload is the object as it was read.
	Workload client.Object
	Subject  decision.Subject
	Now      time.Time
	// Policies is the revision of the policies that decide, Bundles what it is made of.
	Policies string
	Bundles  []string

	Templates Templates
	// Pods are the active ones, by name, or by node as Type.NodeOf says. Gone are finished or
	// terminating.
	Pods []*facts.Pod
	Gone []*corev1.Pod
	// Difference is that of these pods.
	Difference UpdateDelta

	kind  Kind
	asked map[*facts.Pod]bool
	// bound is that of a Bounder, nil of other kinds.
	bound func(*facts.Pod) bool
	// restarting are the names of pods that restart in place now, or are about to.
	restarting map[string]bool
}

// dimensions that pods are grouped by.
const (
	zone   = "zone"
	region = "region"
)

// IsRollback reports whether pods are moved back to the current revision.
func (f *Facts) IsRollback() bool { return f.Difference.Update < 0 }

// TargetRevision names the revision that pods are moved to: the current one only where the
// difference says so.
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

// IsLeaving reports whether a pod is asked to go, or prepares to.
func (f *Facts) IsLeaving(p *facts.Pod) bool {
	return f.asked[p] || p.State == kruise.LifecycleStatePreparingDelete
}

// AtTarget reports whether a pod has the revision that it is to have. One of the current
// revision has it when the partition keeps as many as there are: it may have prepared
// its update before others took its place, and what waits for an update that does not
// come, with its traffic drained, waits indefinitely.
func (f *Facts) AtTarget(p *facts.Pod) bool {
	return f.Templates.HasRevision(p.Pod, f.TargetRevision()) || (f.Difference.Settled && !p.Facts.Updated)
}

// CanMove reports whether a pod may be moved at all; see Bounder.
func (f *Facts) CanMove(p *facts.Pod) bool { return f.bound == nil || f.bound(p) }

// IsCandidate reports whether a pod is not at its target and may be moved (CS-08). One that
// waits for its recreation has been taken already.
func (f *Facts) IsCandidate(p *facts.Pod) bool {
	if p.Facts.Updated != f.IsRollback() || f.IsLeaving(p) {
		return false
	}
	if !f.CanMove(p) {
		return false
	}
	if _, ok := f.kind.(KindWithSharedPods); ok {
		return true // what its owner has begun is no concern of a guest's
	}
	return p.State == kruise.LifecycleStateUpdated || !inplace.InGrace(p.Pod)
}

// isCondemned reports whether no replica needs a pod any more.
func (f *Facts) isCondemned(p *facts.Pod) bool {
	return f.Difference.Condemned != nil && f.Difference.Condemned(p)
}

// isRecreating reports whether a pod not at its target is about to be deleted.
func (f *Facts) isRecreating(p *facts.Pod) bool {
	return p.Facts.Updated == f.IsRollback() && p.State != kruise.LifecycleStatePreparingDelete && f.asked[p]
}

// countUnavailable counts what the walk starts from. A pod that waits to be deleted has been
// taken already, though it is still there: no other available one may follow it. One that
// is unavailable anyway may, or each could wait for the other.
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

// PlanInput is the question of rollout/plan.
func (f *Facts) PlanInput() points.PlanInput {
	return points.PlanInput{
		Now: f.Now.UnixNano(), Workload: f.WorkloadFacts(), Strategy: f.Strategy, Revisions: f.RevisionNames(), Counts: f.CountPods(),
		Update: f.Difference.Update, MaxUnavailable: f.Difference.MaxUnavailable,
		Groups: f.CountGroups(),
	}
}

// ScaleInput is what every question of rollout/scale has; the kind completes it.
func (f *Facts) ScaleInput() points.ScaleInput {
	return points.ScaleInput{Now: f.Now.UnixNano(), Workload: f.WorkloadFacts(), Strategy: f.Strategy, Revisions: f.RevisionNames(), Counts: f.CountPods()}
}

// DeletionFacts is what rollout/scale sees of a pod that may be deleted.
func (f *Facts) DeletionFacts(p *facts.Pod) points.VictimFacts {
	v := points.VictimFacts{PodFacts: p.Facts}
	incrementIf(&v.Available, f.IsAvailable(p))
	return v
}

// CountGroups count the pods by where they run.
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

// RevisionNames are the two that the rollout goes between.
func (f *Facts) RevisionNames() points.Revisions {
	return points.Revisions{Current: f.Templates.CurrentRevision(), Update: f.Templates.UpdateRevision()}
}

// CountPods are the pods, by what they are.
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

// WorkloadFacts are what policies see of the object.
func (f *Facts) WorkloadFacts() points.Workload {
	return points.Workload{
		Kind: f.Subject.Kind, Namespace: f.Subject.Namespace, Name: f.Subject.Name, UID: f.Subject.UID,
		Replicas: f.Replicas, Labels: f.Workload.GetLabels(), Annotations: policyAnnotations(f.Workload.GetAnnotations()),
	}
}

// policyAnnotations leaves out what no policy decides by and what is long.
func policyAnnotations(all map[string]string) map[string]string {
	out := make(map[string]string, len(all))
	for k, v := range all {
		if k != corev1.LastAppliedConfigAnnotation && !strings.HasPrefix(k, "deployment.kubernetes.io/") {
			out[k] = v
		}
	}
	return out
}

// candidatePods are the pods that may be moved.
func (f *Facts) candidatePods() []*facts.Pod {
	return slices.DeleteFunc(slices.Clone(f.Pods), func(p *facts.Pod) bool { return !f.IsCandidate(p) })
}
