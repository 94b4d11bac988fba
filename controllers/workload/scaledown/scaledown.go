// SPDX-License-Identifier: Apache-2.0

// Package scaledown orders the pods that a scale-in may delete (CS-07): by the
// keys of a policy, and between these by how well the remaining pods would be
// spread over nodes and topology.
package scaledown

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// OrderDeletions returns the indices in group in the order of deletion. Pods of other
// groups do not count for the spread. out has the keys by position in pods.
func OrderDeletions(pods []*facts.Pod, group []int, out rollout.ScaleOutput, constraints []corev1.TopologySpreadConstraint, topology *facts.Topology) []int {
	o := podOrder{pods: pods, out: out, descending: map[int]bool{}}
	for _, i := range out.Descending {
		o.descending[i] = true
	}
	all := slices.Clone(group)
	node := o.sameNode(all)
	rank := node
	if len(constraints) > 0 {
		rank = o.rankSpread(all, node, constraints, topology)
	}
	slices.SortStableFunc(all, func(a, b int) int { return o.comparePods(a, b, rank) })
	return all
}

type podOrder struct {
	pods       []*facts.Pod
	out        rollout.ScaleOutput
	descending map[int]bool
}

// comparePods is negative if a is deleted before b. rank, higher first, is compared after
// Keys and before Then; it may be nil.
func (o podOrder) comparePods(a, b int, rank []float64) int {
	if c := o.compareKeys(o.out.Keys[a], o.out.Keys[b], 0); c != 0 {
		return c
	}
	if rank != nil && rank[a] != rank[b] {
		return cmp.Compare(rank[b], rank[a])
	}
	return o.compareKeys(o.out.Then[a], o.out.Then[b], len(o.out.Keys[a]))
}

func (o podOrder) compareKeys(a, b []float64, from int) int {
	for i := range a {
		if c := cmp.Compare(a[i], b[i]); c != 0 {
			if o.descending[from+i] {
				return -c
			}
			return c
		}
	}
	return 0
}

// sameNode ranks pods that share a node: all except the last to be deleted
// get a rank, and the first to be deleted gets the highest.
func (o podOrder) sameNode(all []int) []float64 {
	rank := make([]float64, len(o.pods))
	for _, group := range groupIndices(all, func(i int) string { return o.pods[i].Spec.NodeName }) {
		slices.SortStableFunc(group, func(a, b int) int { return o.comparePods(a, b, nil) })
		for j, i := range group {
			rank[i] = float64(len(group) - 1 - j)
		}
	}
	return rank
}

// rankSpread ranks pods by each topology spread constraint: pods with a crowded
// value are deleted first. A constraint weighs more the more values there are.
func (o podOrder) rankSpread(all []int, node []float64, constraints []corev1.TopologySpreadConstraint, topology *facts.Topology) []float64 {
	rank := make([]float64, len(o.pods))
	for _, c := range constraints {
		inner := node
		if c.TopologyKey == corev1.LabelHostname {
			inner = nil
		}
		byValue := groupIndices(all, func(i int) string { return topologyValue(o.pods[i], c.TopologyKey, topology) })
		weight := math.Log(float64(len(byValue) + 2))
		for _, group := range byValue {
			slices.SortStableFunc(group, func(a, b int) int { return o.comparePods(a, b, inner) })
			for j, i := range group {
				rank[i] += float64(len(group)-j) * weight
			}
		}
	}
	return rank
}

func topologyValue(p *facts.Pod, key string, topology *facts.Topology) string {
	switch key {
	case corev1.LabelHostname:
		return p.Spec.NodeName
	case corev1.LabelTopologyZone:
		return topology.NodePlace(p.Spec.NodeName).Zone
	case corev1.LabelTopologyRegion:
		return topology.NodePlace(p.Spec.NodeName).Region
	}
	return topology.NodeLabel(p.Spec.NodeName, key)
}

// groupIndices groups indices by a value. It omits those without a value: pods that are
// on no node do not count for the spread.
func groupIndices(all []int, of func(int) string) map[string][]int {
	out := map[string][]int{}
	for _, i := range all {
		if v := of(i); v != "" {
			out[v] = append(out[v], i)
		}
	}
	return out
}
