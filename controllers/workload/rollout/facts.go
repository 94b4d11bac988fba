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
	Difference Difference

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

// Backwards says whether pods are moved back to the current revision.
func (f *Facts) Backwards() bool { return f.Difference.Update < 0 }

// Target names the revision that pods are moved to: the current one only where the
// difference says so.
func (f *Facts) Target() string {
	if f.Backwards() {
		return f.Templates.Current()
	}
	return f.Templates.Update()
}

// Available says whether a pod is available (CS-02).
func (f *Facts) Available(p *facts.Pod) bool {
	if guest, ok := f.kind.(Guest); ok {
		return guest.Available(f.Workload, p)
	}
	return p.Available(f.MinReady, f.Now)
}

// DeletionAsked says whether a user asked for the deletion of a pod.
func (f *Facts) DeletionAsked(p *facts.Pod) bool { return f.asked[p] }

// Leaves says whether a pod is asked to go, or prepares to.
func (f *Facts) Leaves(p *facts.Pod) bool {
	return f.asked[p] || p.State == kruise.LifecycleStatePreparingDelete
}

// AtTarget says whether a pod has the revision that it is to have. One of the current
// revision has it when the partition keeps as many as there are: it may have prepared
// its update before others took its place, and what waits for an update that does not
// come, with its traffic drained, waits for ever.
func (f *Facts) AtTarget(p *facts.Pod) bool {
	return f.Templates.Is(p.Pod, f.Target()) || (f.Difference.Settled && !p.Facts.Updated)
}

// Bound says whether a pod may be moved at all; see Bounder.
func (f *Facts) Bound(p *facts.Pod) bool { return f.bound == nil || f.bound(p) }

// Candidate says whether a pod is not at its target and may be moved (CS-08). One that
// waits for its recreation has been taken already.
func (f *Facts) Candidate(p *facts.Pod) bool {
	if p.Facts.Updated != f.Backwards() || f.Leaves(p) {
		return false
	}
	if !f.Bound(p) {
		return false
	}
	if _, ok := f.kind.(Guest); ok {
		return true // what its owner has begun is no concern of a guest's
	}
	return p.State == kruise.LifecycleStateUpdated || !inplace.InGrace(p.Pod)
}

// isCondemned says whether no replica needs a pod any more.
func (f *Facts) isCondemned(p *facts.Pod) bool {
	return f.Difference.Condemned != nil && f.Difference.Condemned(p)
}

// recreating says whether a pod not at its target is about to be deleted.
func (f *Facts) recreating(p *facts.Pod) bool {
	return p.Facts.Updated == f.Backwards() && p.State != kruise.LifecycleStatePreparingDelete && f.asked[p]
}

// unavailable counts what the walk starts from. A pod that waits to be deleted has been
// taken already, though it is still there: no other available one may follow it. One that
// is unavailable anyway may, or each could wait for the other.
func (f *Facts) unavailable() (u selection.Unavailable, recreating int) {
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
		atTarget, going := p.Facts.Updated != f.Backwards(), f.recreating(p)
		add(&recreating, going)
		switch {
		case !f.Steady(p): // or its restart is under way
			u.Total++
			add(&u.AtTarget, atTarget || going)
		case going:
			u.Total++
		}
	}
	return u, recreating
}

// PlanInput is the question of rollout/plan.
func (f *Facts) PlanInput() points.PlanInput {
	return points.PlanInput{
		Now: f.Now.UnixNano(), Workload: f.WorkloadFacts(), Strategy: f.Strategy, Revisions: f.Revisions(), Counts: f.Counts(),
		Update: f.Difference.Update, MaxUnavailable: f.Difference.MaxUnavailable,
		Groups: f.Groups(),
	}
}

// ScaleInput is what every question of rollout/scale has; the kind completes it.
func (f *Facts) ScaleInput() points.ScaleInput {
	return points.ScaleInput{Now: f.Now.UnixNano(), Workload: f.WorkloadFacts(), Strategy: f.Strategy, Revisions: f.Revisions(), Counts: f.Counts()}
}

// Victim is what rollout/scale sees of a pod that may be deleted.
func (f *Facts) Victim(p *facts.Pod) points.VictimFacts {
	v := points.VictimFacts{PodFacts: p.Facts}
	add(&v.Available, f.Available(p))
	return v
}

// Groups count the pods by where they run.
func (f *Facts) Groups() map[string]map[string]points.Group {
	out := map[string]map[string]points.Group{zone: {}, region: {}}
	for _, p := range f.Pods {
		for dimension, value := range groupsOf(p) {
			g := out[dimension][value]
			g.Total++
			add(&g.Updated, p.Facts.Updated)
			add(&g.Unavailable, !f.Available(p))
			out[dimension][value] = g
		}
	}
	return out
}

func groupsOf(p *facts.Pod) map[string]string {
	return map[string]string{zone: p.Facts.Zone, region: p.Facts.Region}
}

// Revisions are the two that the rollout goes between.
func (f *Facts) Revisions() points.Revisions {
	return points.Revisions{Current: f.Templates.Current(), Update: f.Templates.Update()}
}

// Counts are the pods, by what they are.
func (f *Facts) Counts() points.Counts {
	c := points.Counts{Total: len(f.Pods)}
	for _, p := range f.Gone {
		add(&c.Terminating, p.DeletionTimestamp != nil)
	}
	for _, p := range f.Pods {
		available := f.Available(p)
		add(&c.Ready, p.Ready)
		add(&c.Available, available)
		add(&c.Unavailable, !available)
		add(&c.Updated, p.Facts.Updated)
		add(&c.UpdatedReady, p.Facts.Updated && p.Ready)
		add(&c.UpdatedAvail, p.Facts.Updated && available)
		preparing := p.State == kruise.LifecycleStatePreparingDelete
		add(&c.PreparingDelete, preparing)
		add(&c.SpecifiedDelete, !preparing && f.asked[p])
	}
	return c
}

func add(n *int, yes bool) {
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

// candidates are the pods that may be moved.
func (f *Facts) candidates() []*facts.Pod {
	return slices.DeleteFunc(slices.Clone(f.Pods), func(p *facts.Pod) bool { return !f.Candidate(p) })
}
