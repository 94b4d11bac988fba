// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func sharesOf(limits ...string) *kruise.WorkloadSpread {
	w := &kruise.WorkloadSpread{}
	w.Spec.TargetReference = kruise.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	for _, limit := range limits {
		part := kruise.WorkloadSpreadSubset{Name: string(rune('a' + len(w.Spec.Subsets)))}
		if limit != "" {
			part.MaxReplicas = ptr.To(intstr.Parse(limit))
		}
		w.Spec.Subsets = append(w.Spec.Subsets, part)
	}
	return w
}

// The cost of a pod is found out while it is admitted: it takes no longer for a workload that asks for very many pods, in a subset
// that has no share of them.
func TestACostIsFoundInFewSteps(t *testing.T) {
	for _, tc := range []struct {
		limits []string
		place  int
	}{
		{[]string{"50%", "50%", ""}, 2},
		{[]string{"0%", ""}, 0},
		{[]string{"1000000000", "50%", ""}, 2},
	} {
		c := CostsOf(sharesOf(tc.limits...), 20_000_000)
		if got, want := c.CostOf(tc.place, 1), PlainCost(c.w, tc.place); got != want || c.upTo > 200_000 {
			t.Errorf("%v: a pod of subset %d costs %d after %d steps, want %d", tc.limits, tc.place, got, c.upTo, want)
		}
	}
}

// The n-th pod of a subset goes when the workload gets fewer replicas than it takes until the subset has n pods, where subsets are
// filled in their order up to their limits.
func TestCostsAreThoseOfFillingSubsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.SliceOfN(rapid.SampledFrom([]string{"", "0", "2", "7", "0%", "1%", "10%", "33%", "50%", "67%", "100%"}), 2, 4).Draw(t, "limits")
		w := sharesOf(append(limits, "50%")...)
		replicas := rapid.IntRange(0, 60).Draw(t, "replicas")
		place, n := rapid.IntRange(0, len(limits)).Draw(t, "place"), rapid.IntRange(0, 20).Draw(t, "n")
		want := PlainCost(w, place)
		for r := 1; r <= replicas && n > 0; r++ {
			left, has := r, 0
			for i := range place + 1 {
				has = left
				if limit, err := MaxPods(&w.Spec.Subsets[i], r); err != nil {
					t.Fatal(err)
				} else if limit != nil {
					has = min(has, *limit)
				}
				left -= has
			}
			if has >= n {
				want = mostCost - r*len(w.Spec.Subsets) - place
				break
			}
		}
		if got := CostsOf(w, replicas).CostOf(place, n); got != want {
			t.Errorf("pod %d of subset %d costs %d, want %d", n, place, got, want)
		}
	})
}
