// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
)

// MovableFilter implements rollout.KindWithCandidateFilter (ADS-08). A pod may be moved if its node exists and the selector
// of the strategy selects the node, unless the node has a pod of the next revision already. If a node has two
// old pods, one of them is deleted first.
func (k *Kind) MovableFilter(_ *rollout.Round, f *rollout.Facts) func(*facts.Pod) bool {
	may, selected := map[*facts.Pod]bool{}, nodeSelector(f.Workload.(*kruise.DaemonSet))
	for _, s := range buildSites(f) {
		old := s.runningPods(false)
		if len(old) == 1 && len(s.runningPods(true)) == 0 && k.updatesNode(s) && selected.Matches(labels.Set(s.node.Labels)) {
			may[old[0]] = true
		}
	}
	return func(p *facts.Pod) bool { return may[p] }
}

// updatesNode reports whether the pods of a node take part in updates.
func (k *Kind) updatesNode(s *site) bool {
	return s.node != nil && (s.shouldRun() || len(s.pods) > 0 && !k.Gates.PruneIneligibleNodes)
}

// nodeSelector is the selector of nodes whose pods are updated. A selector that cannot be read selects none.
func nodeSelector(set *kruise.DaemonSet) labels.Selector {
	ru := set.Spec.UpdateStrategy.RollingUpdate
	if ru == nil || ru.Selector == nil {
		return labels.Everything()
	}
	selector, err := metav1.LabelSelectorAsSelector(ru.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// ComputeDifference implements rollout.Kind (ADS-08 to ADS-10). It counts nodes, not pods. A node that has
// a pod of the next revision, or no pod, is not one of those that the partition leaves at the old revision.
func (k *Kind) ComputeDifference(f *rollout.Facts) rollout.UpdateDelta {
	left, candidates := -f.Strategy.Partition, 0
	un := &selection.Unavailable{}
	for _, s := range buildSites(f) {
		if !k.updatesNode(s) {
			continue
		}
		old := s.runningPods(false)
		if len(old) > 0 && len(s.runningPods(true)) == 0 { // only nodes with an old pod alone are still to be updated
			left++
		}
		for _, p := range old {
			if f.CanMove(p) {
				candidates++
			}
		}
		if f.Strategy.MaxSurge > 0 {
			incrementIf(&un.Total, s.hasSurge())
			continue
		}
		switch s.nodeAvailability(f) {
		case yes:
			un.Total++
		case updating:
			un.Total++
			un.AtTarget++
		}
	}
	d := rollout.UpdateDelta{Update: min(max(left, 0), candidates), MaxUnavailable: f.Strategy.MaxUnavailable, Unavailable: un}
	if f.Strategy.MaxSurge > 0 {
		d.MaxUnavailable, un.AtTarget = f.Strategy.MaxSurge, un.Total
	}
	d.Settled = d.Update == 0 || f.Strategy.Type == rollout.OnDelete
	d.Update = min(d.Update, burstLimit(f.Workload.(*kruise.DaemonSet), f.Replicas))
	return d
}

// availability is whether a node is without an available pod.
type availability int

const (
	no availability = iota
	yes
	updating // because of an update
)

// nodeAvailability counts a node as unavailable that has no pod or more than one, or whose pod is not available or
// terminates. An old pod that is not available counts as well: OpenKruise leaves it out,
// and so may have more nodes without an available pod than it is allowed.
func (s *site) nodeAvailability(f *rollout.Facts) availability {
	before, next := s.runningPods(false), s.runningPods(true)
	switch {
	case len(before)+len(next) != 1:
		return updating
	case len(next) == 1 && !f.IsSteady(next[0]):
		return updating
	case len(before) == 1 && !f.IsSteady(before[0]):
		return yes
	}
	return no
}

// hasSurge reports whether a node has two pods. A pod whose deletion a hook holds counts.
func (s *site) hasSurge() bool { return len(s.pods) > 1 }

func incrementIf(n *int, yes bool) {
	if yes {
		*n++
	}
}
