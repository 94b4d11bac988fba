// SPDX-License-Identifier: Apache-2.0

// Package invariant counts what there is of a workload from outside: from its pods and
// revisions alone, without the differences, plans and clamps that decide what is written.
// Simulations and tests hold what was promised against that.
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

// New makes a Witness of a workload of a kind.
func New(kind rollout.Kind) *Checker { return &Checker{kind, kind.WorkloadType(), facts.NewSet()} }

// Observation is what there is at an instant.
type Observation struct {
	Active, Available int
	Updated           int  // and not going
	Going             int  // asked to be deleted, or preparing it
	Preparing         int  // for their deletion
	Single            bool // there is no other revision to keep pods at
}

// KindWithInvariants is a Kind that promises more than every kind does.
type KindWithInvariants interface {
	// BrokenPromise is what a write of the controller that led from one sight to another breaks,
	// "" if nothing.
	BrokenPromise(workload client.Object, before, after Observation) string
}

// KindWithWantedPods is a Kind that wants certain pods, such as those of some ordinals. The others are to
// go: whether they are available or updated says nothing of the workload.
type KindWithWantedPods interface {
	WantsPod(workload client.Object, pod *corev1.Pod) bool
}

// CountPods counts by the same rules as the controller (CS-02). Pods of others among
// the given ones do not count.
func (w *Checker) CountPods(workload client.Object, pods []*corev1.Pod, revisions []*appsv1.ControllerRevision, now time.Time) Observation {
	spec, err := w.kind.ReadSpec(workload)
	if err != nil {
		return Observation{} // the controller does nothing then either
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
	return slices.ContainsFunc(w.typ.Workloads(context.Background(), pod), func(r rollout.Reference) bool { return r.UID == workload.GetUID() })
}

// BrokenPromise is what a write of the controller that led from one sight to another
// breaks of what is promised at every instant, "" if nothing.
func (w *Checker) BrokenPromise(workload client.Object, before, after Observation) string {
	spec, err := w.kind.ReadSpec(workload)
	if err == nil {
		err = spec.Invalid
	}
	if err != nil {
		return err.Error()
	}
	if w.typ.NodeOf != nil {
		return "" // what it promises is by node, which a Sight is not
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
	// The partition of an ordered update is a position: it says of single pods whether they move.
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
