// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// resetsNow returns the resets that are due, in the pods that the update strategy selects. The partition leaves that many pods that are
// not updated as they are, except for a pod whose upgrade ends with its reset.
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

// isUpgradeLeftover reports whether all containers to reset are left from an upgrade: containers that never worked have version 0.
func isUpgradeLeftover(p *facts.Pod, list []containerReset) bool {
	for _, one := range list {
		if version := p.Annotations[kruise.SidecarSetVersionPrefix+one.container]; version == "" || version == "0" {
			return false
		}
	}
	return true
}

// resettingFilter returns whether an update or a reset of a pod is under way, which counts against maxUnavailable. A pod that is not ready for
// another reason does not count, so it does not make the resets of all other pods wait.
func resettingFilter(set *kruise.SidecarSet, _ *rollout.Facts) func(*facts.Pod) bool {
	return func(p *facts.Pod) bool {
		return !isConsistent(set.Name, p.Pod, namesIn(set))
	}
}
