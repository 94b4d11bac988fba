// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// resetsNow are the resets that pods are due, of those that the update strategy selects. The partition keeps as many pods
// that are not updated as they are, but for one whose upgrade ends with its reset.
func (k *Kind) resetsNow(r *rollout.Round, f *rollout.Facts) (map[*facts.Pod][]containerReset, error) {
	m, set, err := loadMemory(r)
	if err != nil {
		return nil, err
	}
	out, old := map[*facts.Pod][]containerReset{}, 0
	for _, p := range f.Pods {
		if !p.Facts.Updated && isSelected(m, p.Pod) {
			old++
		}
	}
	room := max(old-f.Strategy.Partition, 0)
	for _, p := range f.Pods {
		list := findResets(set, p.Pod)
		ends := len(list) > 0 && isResetDue(set, p, list)
		if !ends {
			list = wantedAgain(list)
		}
		if len(list) == 0 || !isSelected(m, p.Pod) {
			continue
		}
		if !p.Facts.Updated && !(ends && isUpgradeLeftover(p, list)) {
			if room--; room < 0 {
				continue
			}
		}
		out[p] = list
	}
	return out, nil
}

// isUpgradeLeftover reports whether the containers to reset are left from an upgrade: those that never had work have version 0.
func isUpgradeLeftover(p *facts.Pod, list []containerReset) bool {
	for _, one := range list {
		if version := p.Annotations[kruise.SidecarSetVersionPrefix+one.container]; version == "" || version == "0" {
			return false
		}
	}
	return true
}

// resettingFilter reports whether an update or a reset of a pod is under way, which uses up maxUnavailable. A pod that is not ready for
// reasons of its own does not: it must not keep the resets of all others waiting.
func resettingFilter(set *kruise.SidecarSet, _ *rollout.Facts) func(*facts.Pod) bool {
	return func(p *facts.Pod) bool {
		return !isConsistent(set.Name, p.Pod, namesIn(set))
	}
}
