// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// UsesCosts reports whether the workload of a spread uses deletion costs at scale-in (WS-07).
func UsesCosts(w *kruise.WorkloadSpread) bool {
	switch w.Spec.TargetReference.Kind {
	case "Deployment", "ReplicaSet", "CloneSet":
		return true
	}
	return false
}

// PlainCost is the deletion cost of the pods of a subset, by the position of the subset, if limits are numbers.
func PlainCost(w *kruise.WorkloadSpread, place int) int { return 100 * (len(w.Spec.Subsets) - place) }

const (
	// mostCost is more than the cost of any pod. Costs are int32.
	mostCost = 1_000_000_000
	// mostTried bounds how many replicas are tried while a pod is admitted. It is more than the pods of a cluster.
	mostTried = 200_000
)

// Costs are the deletion costs of pods that are not beyond the limits of their subsets (WS-07).
//
// If limits are percentages, the costs keep the shares of the subsets. The controller of a workload deletes pods as soon as it is
// scaled in, before costs could be changed, so the order of all pods has to be fixed before. The n-th pod of a subset is deleted when the
// workload has fewer replicas than are needed to fill the subsets, in their order, until this subset has n pods. That number depends
// neither on the present replicas nor on other pods, so few costs change when a workload is scaled.
type Costs struct {
	w        *kruise.WorkloadSpread
	replicas int
	// limits are the limits of the subsets; nil for a subset without one.
	limits []*subsetLimit
	// filled has, for each subset, the replicas with which it gets its n-th pod. upTo is how many replicas were tried.
	filled [][]int
	upTo   int
}

// CostsOf returns the costs of the pods of a workload with so many replicas.
func CostsOf(w *kruise.WorkloadSpread, replicas int) *Costs {
	c := &Costs{w: w, replicas: min(replicas, mostTried), filled: make([][]int, len(w.Spec.Subsets)), limits: make([]*subsetLimit, len(w.Spec.Subsets))}
	for i := range w.Spec.Subsets {
		part := &w.Spec.Subsets[i]
		if n, err := MaxPods(part, 100); err == nil && n != nil {
			c.limits[i] = &subsetLimit{*n, part.MaxReplicas.Type == intstr.String}
		}
	}
	return c
}

// subsetLimit is how many pods a subset may have: a number, or a percentage.
type subsetLimit struct {
	n         int
	ofHundred bool
}

// ofReplicas returns the limit for a number of replicas.
func (s subsetLimit) ofReplicas(replicas int) int {
	if !s.ofHundred {
		return s.n
	}
	return (s.n*replicas + 99) / 100
}

// CostOf returns the cost of the n-th pod of a subset. The pods are counted from 1, which is deleted last.
func (c *Costs) CostOf(place, n int) int {
	if len(c.filled) == 1 || !hasPercentages(c.w) {
		return PlainCost(c.w, place)
	}
	for len(c.filled[place]) < n && c.upTo < c.replicas {
		c.fillNext()
	}
	if len(c.filled[place]) < n || n < 1 { // the subset gets fewer pods than that
		return PlainCost(c.w, place)
	}
	return mostCost - c.filled[place][n-1]*len(c.filled) - place
}

// hasPercentages reports whether limits of a spread are percentages of the replicas.
func hasPercentages(w *kruise.WorkloadSpread) bool {
	return slices.ContainsFunc(w.Spec.Subsets, func(s kruise.WorkloadSpreadSubset) bool {
		return s.MaxReplicas != nil && s.MaxReplicas.Type == intstr.String
	})
}

// fillNext finds out which subsets get more pods with one more replica.
func (c *Costs) fillNext() {
	c.upTo++
	left := c.upTo
	for i, limit := range c.limits {
		has := left
		if limit != nil {
			has = min(left, limit.ofReplicas(c.upTo))
		}
		left -= has
		for len(c.filled[i]) < has {
			c.filled[i] = append(c.filled[i], c.upTo)
		}
	}
}
