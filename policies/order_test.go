package policies_test

import (
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/decision"
)

// drawPod draws facts as gather makes them: a pod that is not ready is ready
// since no time, and numbers are few so that pods are often equal.
func drawPod(t *rapid.T) decision.PodFacts {
	times := rapid.SampledFrom([]int64{1, 2, 1_700_000_000, decision.MaxTime})
	few := rapid.IntRange(0, 2)
	pod := decision.PodFacts{
		Name: "web", Assigned: rapid.IntRange(0, 1).Draw(t, "assigned"), Phase: few.Draw(t, "phase"),
		Restarts: few.Draw(t, "restarts"), Created: times.Draw(t, "created"), DeletionCost: rapid.IntRange(-1, 1).Draw(t, "deletionCost"),
		State: rapid.SampledFrom([]string{"", "Normal", "PreparingUpdate", "Updated"}).Draw(t, "state"),
	}
	if pod.Phase == 2 && rapid.Bool().Draw(t, "isReady") {
		pod.Ready, pod.ReadySince = 1, times.Draw(t, "readySince")
	}
	return pod
}

// forStrategy names the pods and adds the facts that depend on the strategy.
func forStrategy(t *rapid.T, strategy decision.Strategy, pods []decision.PodFacts) []decision.PodFacts {
	for i := range pods {
		pods[i].Name = fmt.Sprintf("web-%d", i)
		for term := range strategy.Weights {
			if rapid.Bool().Draw(t, "matches") {
				pods[i].Matches = append(pods[i].Matches, term)
			}
		}
		if pods[i].OrderLevel = rapid.IntRange(-1, len(strategy.OrderKeys)-1).Draw(t, "level"); pods[i].OrderLevel >= 0 {
			pods[i].OrderValue = rapid.IntRange(0, 2).Draw(t, "value")
		}
	}
	return pods
}

// comparePriority is A-14: the sum of weights, the highest first; else the level,
// those of no level (-1) first, and in a level the highest number first.
func comparePriority(strategy decision.Strategy, a, b decision.PodFacts) int {
	switch {
	case len(strategy.Weights) > 0:
		return cmp.Compare(weigh(strategy, b), weigh(strategy, a))
	case len(strategy.OrderKeys) > 0:
		return cmp.Or(cmp.Compare(a.OrderLevel, b.OrderLevel), cmp.Compare(b.OrderValue, a.OrderValue))
	}
	return 0
}

func weigh(strategy decision.Strategy, pod decision.PodFacts) (sum int) {
	for _, term := range pod.Matches {
		sum += strategy.Weights[term]
	}
	return sum
}

// compareActive is A-13 without the cost of deletion.
func compareActive(a, b decision.PodFacts) int {
	return cmp.Or(
		cmp.Compare(a.Assigned, b.Assigned),
		cmp.Compare(a.Phase, b.Phase),
		cmp.Compare(a.Ready, b.Ready),
		compareYouth(a, b),
	)
}

// compareYouth is the end of A-13; times that are not known are the latest.
func compareYouth(a, b decision.PodFacts) int {
	if a.Ready == 1 && b.Ready == 1 && a.ReadySince != b.ReadySince {
		return cmp.Compare(b.ReadySince, a.ReadySince)
	}
	return cmp.Or(cmp.Compare(b.Restarts, a.Restarts), cmp.Compare(b.Created, a.Created))
}

// compareVictims is CS-07 without what Go compares between keys and then.
func compareVictims(a, b decision.VictimFacts) int {
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
