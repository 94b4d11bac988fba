// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// reference is UD-02 and UD-03 as they are written, one subset after the other.
func reference(in placement.AllocationInput) []int {
	out := make([]int, len(in.Subsets))
	rest := *in.Replicas
	if in.Strategy != placement.Fixed {
		for _, upTo := range []func(placement.Subset) int{
			func(s placement.Subset) int { return s.Min },
			func(s placement.Subset) int {
				if s.Max == nil {
					return *in.Replicas
				}
				return *s.Max
			},
		} {
			for i, s := range in.Subsets {
				add := max(min(upTo(s)-out[i], rest), 0)
				out[i] += add
				rest -= add
			}
		}
		return out
	}
	var open []int
	for i, s := range in.Subsets {
		if s.Given == nil {
			open = append(open, i)
			continue
		}
		out[i] = *s.Given
		rest -= *s.Given
	}
	slices.SortFunc(open, func(a, b int) int {
		x, y := in.Subsets[a], in.Subsets[b]
		return cmp.Or(cmp.Compare(x.Current, y.Current), cmp.Compare(x.Name, y.Name))
	})
	for n := len(open); n > 0; n-- {
		share := (rest + n - 1) / n
		out[open[n-1]] = share
		rest -= share
	}
	return out
}

func randomSubsets(r *rand.Rand, strategy string, replicas int) (out []placement.Subset) {
	left := replicas
	for i := range 1 + r.IntN(6) {
		s := placement.Subset{Name: fmt.Sprintf("s%d", i), Exists: r.IntN(4) > 0}
		if s.Exists {
			s.Current = r.IntN(replicas + 3)
			s.Placed = r.IntN(s.Current + 1)
			s.Ready = r.IntN(s.Placed + 1)
			s.Unschedulable = strategy != placement.Fixed && r.IntN(3) == 0
			s.Marked = s.Unschedulable || r.IntN(5) == 0
			if s.Unschedulable {
				s.Reserved = r.IntN(s.Current - s.Placed + 1)
			}
		}
		switch {
		case strategy == placement.Fixed && i > 0 && r.IntN(3) == 0:
			n := r.IntN(left + 1)
			left -= n
			s.Given = &n
		case strategy != placement.Fixed && i > 0 && r.IntN(2) == 0: // the first is open
			n := r.IntN(replicas + 1)
			s.Max = &n
			s.Min = r.IntN(n + 1)
		case strategy != placement.Fixed && r.IntN(3) == 0:
			s.Min = r.IntN(replicas + 1)
		}
		out = append(out, s)
	}
	return out
}

// Over random topologies, sums are those of the replicas, each subset is within its numbers,
// the answer is that of the rules as they are written, and the clamp changes nothing of it.
func TestAllocationsOfRandomTopologies(t *testing.T) {
	e := newEngine(t)
	r := rand.New(rand.NewPCG(17, 2026)) //nolint:gosec // reproducible
	rounds := 1500
	if testing.Short() {
		rounds = 300
	}
	for n := range rounds {
		strategy := []string{placement.Fixed, placement.Limits, placement.Adaptive, placement.Reserve}[n%4]
		replicas := r.IntN(40)
		in := placement.AllocationInput{Deployment: placement.UnitedDeployment{Name: "web"}, Strategy: strategy, Replicas: &replicas, Subsets: randomSubsets(r, strategy, replicas)}
		out, record := engine.Decide(t.Context(), e, placement.AllocationPoint(), decision.Subject{Name: "web"}, in)
		if record.Outcome != decision.Decided || len(out.Holds) > 0 {
			t.Fatalf("%s %v of %+v", record.Error, out.Holds, in)
		}
		got, said := out.PermittedReplicas(in), make([]int, len(in.Subsets))
		sum := 0
		for i, s := range in.Subsets {
			said[i] = out.Subsets[i].Replicas
			sum += min(got[i], s.ReplicaQuota(strategy))
			if s.Max != nil && got[i] > *s.Max {
				t.Errorf("%s has %d of at most %d in %+v", s.Name, got[i], *s.Max, in)
			}
		}
		if !slices.Equal(got, said) {
			t.Errorf("the clamp made %v of %v in %+v", got, said, in)
		}
		if (strategy == placement.Fixed || strategy == placement.Limits) && !slices.Equal(got, reference(in)) {
			t.Errorf("got %v, the rules say %v in %+v", got, reference(in), in)
		}
		if strategy != placement.Reserve && sum != replicas || sum > replicas {
			t.Errorf("%s: the sum of %v is %d, want %d in %+v", strategy, got, sum, replicas, in)
		}
		again, _ := engine.Decide(t.Context(), e, placement.AllocationPoint(), decision.Subject{Name: "web"}, in)
		if !slices.Equal(got, again.PermittedReplicas(in)) {
			t.Errorf("asked again it is %v, and was %v", again.PermittedReplicas(in), got)
		}
	}
}

// Whatever a policy of a user answers, the clamp keeps sums and limits.
func TestTheClampOfAnyAnswer(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 2026)) //nolint:gosec // reproducible
	for n := range 20_000 {
		strategy := []string{placement.Fixed, placement.Limits, placement.Adaptive}[n%3]
		replicas := r.IntN(40)
		in := placement.AllocationInput{Strategy: strategy, Replicas: &replicas, Subsets: randomSubsets(r, strategy, replicas)}
		out := placement.AllocationOutput{}
		open := false
		for i, s := range in.Subsets {
			out.Subsets = append(out.Subsets, placement.Share{Name: s.Name, Replicas: r.IntN(60)})
			denied := r.IntN(5) == 0
			if denied {
				room := r.IntN(5)
				out.Denials = append(out.Denials, placement.Denial{Target: s.Name, Reason: "R", Message: "m", Room: &room})
			}
			open = open || !denied && in.Subsets[i].Max == nil && in.Subsets[i].Given == nil
		}
		sum := 0
		for i, n := range out.PermittedReplicas(in) {
			sum += n
			if d := out.DeniedAt(in.Subsets[i].Name); d != nil && n > *d.Room {
				t.Errorf("%s has %d and room for %d", in.Subsets[i].Name, n, *d.Room)
			}
		}
		if sum > replicas || open && sum != replicas {
			t.Errorf("%s: the sum of %v is %d, want %d in %+v, %+v", strategy, out.PermittedReplicas(in), sum, replicas, in, out)
		}
	}
}
