// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// batch is how many nodes are ranked at once.
const batch = 1000

// place is the answer of the policies about a node. It does not change while the node, the job and the
// policies do not.
type place struct {
	key    []float64
	held   *points.Hold
	denied *points.Denial
}

// places remembers the answers of the policies about the nodes of jobs.
type places struct {
	engine *engine.Engine
	mu     sync.Mutex
	jobs   map[types.UID]*known
}

type known struct {
	revision string
	job      points.Job
	nodes    map[string]ranked
}

type ranked struct {
	facts points.NodeFacts
	place
}

func (p *places) forgetJob(job types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.jobs, job)
}

// rankCandidates gives each candidate its place, and sorts them. Nodes whose places are remembered are
// not ranked again. The caller must not call it for two jobs at once.
func (p *places) rankCandidates(ctx context.Context, subject decision.Subject, job points.Job, candidates []candidate) {
	k := p.rememberedRanks(subject, job)
	var fresh []int
	for i := range candidates {
		c := &candidates[i]
		if was, ok := k.nodes[c.Name]; ok && maps.Equal(was.facts.Labels, c.node.Labels) {
			c.place = was.place
			continue
		}
		fresh = append(fresh, i)
	}
	for some := range slices.Chunk(fresh, batch) {
		in := points.RankInput{Job: job}
		for _, i := range some {
			in.Nodes = append(in.Nodes, factsOf(&candidates[i]))
		}
		out, record := engine.Decide(ctx, p.engine, points.RankPoint(), subject, in)
		holds, denials := map[string]*points.Hold{}, map[string]*points.Denial{}
		for i := range out.Holds {
			if h := &out.Holds[i]; holds[h.Node] == nil {
				holds[h.Node] = h
			}
		}
		for i := range out.Denials {
			if d := &out.Denials[i]; denials[d.Node] == nil {
				denials[d.Node] = d
			}
		}
		for n, i := range some {
			c := &candidates[i]
			c.place = place{key: out.Keys[n], held: holds[c.Name], denied: denials[c.Name]}
			if record.Outcome == decision.Decided && record.Revision == k.revision {
				k.nodes[c.Name] = ranked{in.Nodes[n], c.place}
			}
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(slices.Compare(a.key, b.key), cmp.Compare(a.Name, b.Name))
	})
}

// rememberedRanks returns what is remembered about a job, nothing if the job or the policies have changed.
func (p *places) rememberedRanks(subject decision.Subject, job points.Job) *known {
	revision := p.engine.ActiveSnapshot().RevisionFor(subject)
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.jobs[types.UID(subject.UID)]
	if k == nil || k.revision != revision || !reflect.DeepEqual(k.job, job) {
		k = &known{revision: revision, job: job, nodes: map[string]ranked{}}
		p.jobs[types.UID(subject.UID)] = k
	}
	return k
}

func factsOf(c *candidate) points.NodeFacts {
	return points.NodeFacts{
		Name: c.Name, Zone: c.node.Labels[corev1.LabelTopologyZone], Region: c.node.Labels[corev1.LabelTopologyRegion], Labels: c.node.Labels,
	}
}
