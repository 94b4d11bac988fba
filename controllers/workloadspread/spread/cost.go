// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// UsesCosts reports whether the workload of a spread goes by deletion costs at scale in (WS-07).
func UsesCosts(w *kruise.WorkloadSpread) bool {
	switch w.Spec.TargetReference.Kind {
	case "Deployment", "ReplicaSet", "CloneSet":
		return true
	}
	return false
}

// PlainCost is the deletion cost of the pods of a subset, by its place, where limits are numbers.
func PlainCost(w *kruise.WorkloadSpread, place int) int { return 100 * (len(w.Spec.Subsets) - place) }

const (
	// mostCost is more than the cost of any pod. Costs are int32.
	mostCost = 1_000_000_000
	// mostTried bounds how many replicas are tried, while a pod is admitted: more than the pods of a cluster.
	mostTried = 200_000
)

// Costs are the deletion costs of pods that are not beyond the limits of their subsets (WS-07).
//
// Where limits are percentages, each pod costs what keeps the shares: the controller of a workload deletes pods as soon as it is
// scaled in, before costs could follow, so that the order of all pods is known before. The n-th pod of a subset goes when the
// workload gets fewer replicas than it takes to fill the subsets, in their order, until this subset has n pods. That depends
// neither on the replicas nor on other pods, so that few costs change when a workload is scaled.
type Costs struct {
	w        *kruise.WorkloadSpread
	replicas int
	// limits are those of the subsets; nil if there is none.
	limits []*subsetLimit
	// filled are the replicas by which a subset has its n-th pod, and upTo the replicas that were tried.
	filled [][]int
	upTo   int
}

// CostsOf are the costs for the pods of a workload of so many replicas.
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

// subsetLimit is how many pods a subset may have: a number, or so many of a hundred.
type subsetLimit struct {
	n         int
	ofHundred bool
}

// ofReplicas is the share ofReplicas so many replicas.
func (s subsetLimit) ofReplicas(replicas int) int {
	if !s.ofHundred {
		return s.n
	}
	return (s.n*replicas + 99) / 100
}

// CostOf is the cost of the n-th pod of a subset, counted from 1, which is the last one to go.
func (c *Costs) CostOf(place, n int) int {
	if len(c.filled) == 1 || !hasPercentages(c.w) {
		return PlainCost(c.w, place)
	}
	for len(c.filled[place]) < n && c.upTo < c.replicas {
		c.fillNext()
	}
	if len(c.filled[place]) < n || n < 1 { // others have its share
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

// fillNext finds out which subsets have more pods with one more replica.
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
