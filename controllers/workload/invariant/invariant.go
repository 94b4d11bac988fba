// SPDX-License-Identifier: Apache-2.0

// Package invariant counts the pods of a workload independently of its controller: from its pods and
// revisions alone, without the differences, plans and clamps that decide what is written.
// Simulations and tests compare the counts with what the kind promises.
package invariant

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// Checker counts the pods of one workload.
type Checker struct {
	kind rollout.Kind
	typ  rollout.Type
	pods *facts.Set
}

// New makes a Checker for workloads of a kind.
func New(kind rollout.Kind) *Checker { return &Checker{kind, kind.WorkloadType(), facts.NewSet()} }

// Observation counts the pods of a workload at an instant.
type Observation struct {
	Active, Available int
	Updated           int  // and not to be deleted
	Going             int  // their deletion is requested or prepared
	Preparing         int  // in PreparingDelete
	Single            bool // the workload has no other revision
}

// KindWithInvariants is a Kind with promises beyond those of every kind.
type KindWithInvariants interface {
	// BrokenPromise returns which promise a write of the controller between two observations breaks,
	// "" if none.
	BrokenPromise(workload client.Object, before, after Observation) string
}

// KindWithWantedPods is a Kind that wants certain pods, such as those of some ordinals. The other pods are to
// be deleted, so they do not count as available or updated.
type KindWithWantedPods interface {
	WantsPod(workload client.Object, pod *corev1.Pod) bool
}

// CountPods counts by the same rules as the controller (CS-02). Pods of other workloads
// do not count.
func (w *Checker) CountPods(workload client.Object, pods []*corev1.Pod, revisions []*appsv1.ControllerRevision, now time.Time) Observation {
	spec, err := w.kind.ReadSpec(workload)
	if err != nil {
		return Observation{} // the controller does nothing in this case
	}
	wanter, picky := w.kind.(KindWithWantedPods)
	var own []*corev1.Pod
	for _, p := range pods {
		if !rollout.IsInactive(p) && spec.Selector.Matches(labels.Set(p.Labels)) && w.OwnsPod(workload, p) {
			own = append(own, p)
		}
	}
	newest, number := "", int64(0)
	for _, r := range revisions {
		if metav1.IsControlledBy(r, workload) && r.Revision > number {
			newest, number = r.Name, r.Revision
		}
	}
	out := Observation{Active: len(own)}
	if w.typ.CurrentRevision != nil {
		current := *w.typ.CurrentRevision(workload)
		out.Single = current == "" || current == newest
	}
	for _, p := range w.pods.Update(own, facts.Terms{}, facts.NewTopology(), func(p *corev1.Pod) bool {
		return revision.SameHash(p.Labels[rollout.RevisionLabel], newest)
	}) {
		preparing := p.State == kruise.LifecycleStatePreparingDelete
		going := preparing || w.kind.DeletionAsked(workload, p.Pod)
		wanted := !picky || wanter.WantsPod(workload, p.Pod)
		incrementIf(&out.Available, wanted && p.IsAvailable(spec.MinReady, now))
		incrementIf(&out.Going, going)
		incrementIf(&out.Preparing, preparing)
		incrementIf(&out.Updated, wanted && p.Facts.Updated && !going)
	}
	return out
}

// OwnsPod reports whether a pod belongs to a workload, by its owner or as the kind says.
func (w *Checker) OwnsPod(workload client.Object, pod *corev1.Pod) bool {
	if w.typ.Workloads == nil {
		return metav1.IsControlledBy(pod, workload)
	}
	workloads, _ := w.typ.Workloads(context.Background(), pod) // beside an error it returns those that it found
	return slices.ContainsFunc(workloads, func(r rollout.Reference) bool { return r.UID == workload.GetUID() })
}

// BrokenPromise returns which promise a write of the controller between two observations
// breaks, "" if none.
func (w *Checker) BrokenPromise(workload client.Object, before, after Observation) string {
	spec, err := w.kind.ReadSpec(workload)
	if err == nil {
		err = spec.Invalid
	}
	if err != nil {
		return err.Error()
	}
	if w.typ.NodeOf != nil {
		return "" // the promises of such kinds count nodes, and an Observation counts pods
	}
	n := spec.Replicas
	if least := n - spec.Strategy.MaxUnavailable; after.Available < before.Available && after.Available < least {
		return fmt.Sprintf("leaves %d pods available, there must be %d", after.Available, least)
	}
	if p, ok := w.kind.(KindWithInvariants); ok {
		if why := p.BrokenPromise(workload, before, after); why != "" {
			return why
		}
	}
	// The partition of an ordered update is a position, not a number of pods.
	if most := n - spec.Strategy.Partition; !spec.Strategy.Ordered && !after.Single && after.Updated > before.Updated && after.Updated > most {
		return fmt.Sprintf("makes %d pods updated, there may be %d", after.Updated, most)
	}
	return ""
}

func incrementIf(to *int, yes bool) {
	if yes {
		*to++
	}
}
