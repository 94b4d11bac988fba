// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// drawPods draws pods that differ from the first in few facts, so that each fact
// gets to decide between some of them.
func drawPods(t *rapid.T, strategy rollout.Strategy) []rollout.PodFacts {
	pods := []rollout.PodFacts{drawPod(t, strategy)}
	for range rapid.IntRange(0, 5).Draw(t, "more") {
		pod, other := pods[0], drawPod(t, strategy)
		for _, take := range []func(){
			func() { pod.Assigned = other.Assigned },
			func() { pod.Phase, pod.Ready, pod.ReadySince = other.Phase, other.Ready, other.ReadySince },
			func() { pod.Restarts = other.Restarts },
			func() { pod.Created = other.Created },
			func() { pod.State = other.State },
			func() { pod.Matches = other.Matches },
			func() { pod.OrderLevel, pod.OrderValue = other.OrderLevel, other.OrderValue },
			func() { pod.DeletionCost = other.DeletionCost },
		} {
			if rapid.IntRange(0, 3).Draw(t, "differs") == 0 {
				take()
			}
		}
		pods = append(pods, pod)
	}
	for i := range pods {
		pods[i].Name = fmt.Sprintf("web-%d", i)
	}
	return pods
}

// drawPod draws facts as gather makes them: a pod that is not ready is ready
// since no time.
func drawPod(t *rapid.T, strategy rollout.Strategy) rollout.PodFacts {
	times := rapid.SampledFrom([]int64{1, 2, 1_700_000_000, rollout.MaxTime})
	few := rapid.IntRange(0, 2)
	pod := rollout.PodFacts{
		Assigned: rapid.IntRange(0, 1).Draw(t, "assigned"), Phase: few.Draw(t, "phase"),
		Restarts: few.Draw(t, "restarts"), Created: times.Draw(t, "created"), DeletionCost: rapid.IntRange(-1, 1).Draw(t, "deletionCost"),
		State:      rapid.SampledFrom([]string{"", "Normal", "PreparingUpdate", "Updated"}).Draw(t, "state"),
		OrderLevel: rapid.IntRange(-1, len(strategy.OrderKeys)-1).Draw(t, "level"),
	}
	if pod.Phase == 2 && rapid.Bool().Draw(t, "isReady") {
		pod.Ready, pod.ReadySince = 1, times.Draw(t, "readySince")
	}
	if pod.OrderLevel >= 0 {
		pod.OrderValue = few.Draw(t, "value")
	}
	for term := range strategy.Weights {
		if rapid.Bool().Draw(t, "matches") {
			pod.Matches = append(pod.Matches, term)
		}
	}
	return pod
}

// comparePriority is A-14: the sum of weights, the highest first; else the level,
// those of no level (-1) first, and in a level the highest number first.
func comparePriority(strategy rollout.Strategy, a, b rollout.PodFacts) int {
	switch {
	case len(strategy.Weights) > 0:
		return cmp.Compare(weigh(strategy, b), weigh(strategy, a))
	case len(strategy.OrderKeys) > 0:
		return cmp.Or(cmp.Compare(a.OrderLevel, b.OrderLevel), cmp.Compare(b.OrderValue, a.OrderValue))
	}
	return 0
}

func weigh(strategy rollout.Strategy, pod rollout.PodFacts) (sum int) {
	for _, term := range pod.Matches {
		sum += strategy.Weights[term]
	}
	return sum
}

// compareActive is A-13 without the cost of deletion.
func compareActive(a, b rollout.PodFacts) int {
	return cmp.Or(
		cmp.Compare(a.Assigned, b.Assigned),
		cmp.Compare(a.Phase, b.Phase),
		cmp.Compare(a.Ready, b.Ready),
		compareYouth(a, b),
	)
}

// compareYouth is the end of A-13; times that are not known are the latest.
func compareYouth(a, b rollout.PodFacts) int {
	if a.Ready == 1 && b.Ready == 1 && a.ReadySince != b.ReadySince {
		return cmp.Compare(b.ReadySince, a.ReadySince)
	}
	return cmp.Or(cmp.Compare(b.Restarts, a.Restarts), cmp.Compare(b.Created, a.Created))
}

// compareVictims is CS-07 without what Go compares between keys and then.
func compareVictims(a, b rollout.VictimFacts) int {
	return cmp.Or(
		cmp.Compare(a.Assigned, b.Assigned),
		cmp.Compare(a.Phase, b.Phase),
		cmp.Compare(a.Available, b.Available),
		cmp.Compare(a.Ready, b.Ready),
		cmp.Compare(a.DeletionCost, b.DeletionCost),
		compareYouth(a.PodFacts, b.PodFacts),
	)
}

// compareKeys is how Go reads the keys of a policy.
func compareKeys(a, b []float64, descending []int) int {
	for i := range a {
		if c := cmp.Compare(a[i], b[i]); c != 0 {
			if slices.Contains(descending, i) {
				return -c
			}
			return c
		}
	}
	return 0
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
