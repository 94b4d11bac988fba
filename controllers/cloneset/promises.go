// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// Witness counts what there is of a CloneSet, from outside: from its pods and
// revisions alone, without the differences, plans and clamps that decide what is
// written. What was promised is held against that.
type Witness struct{ pods *facts.Set }

// NewWitness makes a Witness of one CloneSet.
func NewWitness() *Witness { return &Witness{facts.NewSet()} }

// Sight is what there is at an instant.
type Sight struct {
	Active, Available int
	Updated           int  // and not going
	Counted           int  // towards the replicas
	Going             int  // asked to be deleted, or preparing it
	Single            bool // there is no other revision to keep pods at
}

// Look counts by the same rules as the controller (CS-02). Pods of others among
// the given ones do not count.
func (v *Witness) Look(set *kruise.CloneSet, pods []*corev1.Pod, revisions []*appsv1.ControllerRevision, now time.Time) Sight {
	k := &Kind{}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return Sight{} // the controller does nothing then either
	}
	var own []*corev1.Pod
	for _, p := range pods {
		if !rollout.Inactive(p) && metav1.IsControlledBy(p, set) && selector.Matches(labels.Set(p.Labels)) {
			own = append(own, p)
		}
	}
	newest, number := "", int64(0)
	for _, r := range revisions {
		if metav1.IsControlledBy(r, set) && r.Revision > number {
			newest, number = r.Name, r.Revision
		}
	}
	out := Sight{Active: len(own), Single: set.Status.CurrentRevision == "" || set.Status.CurrentRevision == newest}
	for _, p := range v.pods.Update(own, facts.Terms{}, facts.NewTopology(), func(p *corev1.Pod) bool {
		return revision.Same(p.Labels[rollout.RevisionLabel], newest)
	}) {
		going := k.DeletionAsked(set, p.Pod) || p.State == kruise.LifecycleStatePreparingDelete
		add(&out.Available, p.Available(time.Duration(set.Spec.MinReadySeconds)*time.Second, now))
		add(&out.Going, going)
		add(&out.Counted, p.State != kruise.LifecycleStatePreparingDelete || !set.Spec.ScaleStrategy.ExcludePreparingDelete)
		add(&out.Updated, p.Facts.Updated && !going)
	}
	return out
}

// Broken is what a write of the controller that led from one sight to another
// breaks of what it promises at every instant, "" if nothing.
func Broken(set *kruise.CloneSet, before, after Sight) string {
	strategy, err := resolve(set)
	if err != nil {
		return err.Error()
	}
	n := replicas(set)
	if least := n - strategy.MaxUnavailable; after.Available < before.Available && after.Available < least {
		return fmt.Sprintf("leaves %d pods available, there must be %d", after.Available, least)
	}
	if most := n + strategy.MaxSurge; after.Counted > before.Counted && after.Counted > most {
		return fmt.Sprintf("makes %d pods, there may be %d", after.Counted, most)
	}
	if most := n - strategy.Partition; !after.Single && after.Updated > before.Updated && after.Updated > most {
		return fmt.Sprintf("makes %d pods updated, there may be %d", after.Updated, most)
	}
	return ""
}
