// SPDX-License-Identifier: Apache-2.0

package rank_test

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"os"
	"slices"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/rank"
)

// BenchmarkRollout is one decision of a rollout: how far it may go now, in
// which order, and who is taken. "go" is what a controller without policies
// would do; "policies" must stay within three times of it.
func BenchmarkRollout(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		for _, changed := range []int{0, 10} {
			seed := maphash.MakeSeed()
			p := rollout(seed, n)
			name := fmt.Sprintf("pods=%d/changed=%d", n, changed)
			b.Run(name+"/go", func(b *testing.B) {
				b.ReportAllocs()
				for round := 0; b.Loop(); round++ {
					p.touch(seed, round, changed)
					if got := byHand(p, n/10, n/5); len(got) != n/10 {
						b.Fatal(len(got))
					}
				}
			})
			b.Run(name+"/policies", func(b *testing.B) {
				e, err := engine.New(os.DirFS("../../policies"))
				if err != nil {
					b.Fatal(err)
				}
				defer e.Close()
				r := rank.New(e)
				b.ReportAllocs()
				for round := 0; b.Loop(); round++ {
					p.touch(seed, round, changed)
					got, err := byPolicy(e, r, p, n/10, n/5)
					if err != nil || len(got) != n/10 {
						b.Fatal(len(got), err)
					}
				}
			})
		}
	}
}

// rollout is a workload of which a tenth is updated.
func rollout(seed maphash.Seed, n int) *pods {
	p := somePods(seed, n)
	for i := range p.facts {
		p.change(seed, i, func(f *points.PodFacts) {
			f.Updated = i%10 == 0
			f.ReadySince = int64(f.Ready) * f.ReadySince
			f.Ready, f.ReadySince = 1, 1_700_000_000+int64(i*7919%100_000)
		})
	}
	return p
}

// touch changes some pods, others each round, as a status update would.
func (p *pods) touch(seed maphash.Seed, round, n int) {
	for k := range n {
		i := (round*n + k*997) % len(p.facts)
		p.change(seed, i, func(f *points.PodFacts) { f.ReadySince++ })
	}
}

func count(p *pods) (c points.Counts) {
	for i := range p.facts {
		f := &p.facts[i]
		c.Total++
		c.Ready += f.Ready
		c.Available += f.Ready
		c.Unavailable += 1 - f.Ready
		if f.Updated {
			c.Updated++
			c.UpdatedReady += f.Ready
			c.UpdatedAvail += f.Ready
		}
	}
	return c
}

func candidates(p *pods) []int {
	out := make([]int, 0, len(p.facts))
	for i := range p.facts {
		if !p.facts[i].Updated && p.facts[i].State != "PreparingDelete" {
			out = append(out, i)
		}
	}
	return out
}

// walk is CS-10.
func walk(p *pods, order []int, c points.Counts, limit, maxUnavailable int) []int {
	picked := make([]int, 0, limit)
	unavailable, target := c.Unavailable, c.Updated-c.UpdatedAvail
	for _, i := range order {
		if len(picked) >= limit || target+len(picked) >= maxUnavailable {
			break
		}
		if p.facts[i].Ready == 1 {
			if unavailable >= maxUnavailable {
				break
			}
			unavailable++
		}
		picked = append(picked, i)
	}
	return picked
}

func byHand(p *pods, update, maxUnavailable int) []int {
	c := count(p)
	order := candidates(p)
	slices.SortFunc(order, func(i, j int) int {
		a, b := &p.facts[i], &p.facts[j]
		return cmp.Or(
			cmp.Compare(a.Assigned, b.Assigned), cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Ready, b.Ready),
			cmp.Compare(b.ReadySince, a.ReadySince), cmp.Compare(b.Restarts, a.Restarts), cmp.Compare(b.Created, a.Created), cmp.Compare(i, j),
		)
	})
	return walk(p, order, c, update, maxUnavailable)
}

func byPolicy(e *engine.Engine, r *rank.Ranker, p *pods, update, maxUnavailable int) ([]int, error) {
	ctx, subject := context.Background(), decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u1"}
	w := points.Workload{Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u1", Replicas: len(p.facts)}
	s := points.Strategy{Type: "RollingUpdate", Policy: "InPlaceIfPossible", MaxUnavailable: maxUnavailable, ScaleMaxUnavailable: 1 << 30}
	c := count(p)
	plan, rec := engine.Decide(ctx, e, points.PlanPoint(), subject, points.PlanInput{
		Now: 1_700_000_000_000_000_000, Workload: w, Strategy: s, Revisions: points.Revisions{Current: "a", Update: "b"},
		Counts: c, Update: update, MaxUnavailable: maxUnavailable,
		Groups: map[string]map[string]points.Group{"zone": {"a": {Total: c.Total, Updated: c.Updated}}},
	})
	if rec.Outcome != decision.Decided || len(plan.Holds) > 0 {
		return nil, fmt.Errorf("%s: %s %v", rec.Outcome, rec.Error, plan.Holds)
	}
	o := r.RankPods(ctx, subject, w, s, p)
	if o.Outcome != decision.Decided {
		return nil, fmt.Errorf("%s: %s", o.Outcome, o.Records[len(o.Records)-1].Error)
	}
	order := o.ArrangePods(candidates(p), plan.Scatter, func(i int, key string) string { return p.facts[i].Labels[key] })
	return walk(p, order, c, min(plan.Limit, update), min(plan.MaxUnavailable, maxUnavailable)), nil
}

func TestTheBenchmarkComparesEqualDecisions(t *testing.T) {
	seed := maphash.MakeSeed()
	p := rollout(seed, 500)
	e, err := engine.New(os.DirFS("../../policies"))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := rank.New(e)
	for round := range 3 {
		p.touch(seed, round, 10)
		got, err := byPolicy(e, r, p, 50, 100)
		if err != nil {
			t.Fatal(err)
		}
		if want := byHand(p, 50, 100); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
