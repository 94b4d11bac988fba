// SPDX-License-Identifier: Apache-2.0

package scaledown

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

// victim is a pod on a node, with what a policy gave it: one key before the
// spread and one after it.
type victim struct {
	node      string
	key, then float64
}

// cluster has nodes n0.. of zones by their number: n0 and n1 in z0, n2 and n3 in
// z1 and so on, and one rack for each.
func cluster() *facts.Topology {
	t := facts.NewTopology()
	for i := range 8 {
		t.AssumePlace(fmt.Sprint("n", i), map[string]string{
			corev1.LabelTopologyZone: fmt.Sprint("z", i/2), corev1.LabelTopologyRegion: "r", "rack": fmt.Sprint("k", i),
		})
	}
	return t
}

func order(vs []victim, constraints []string, descending ...int) []int {
	var pods []*facts.Pod
	out := rollout.ScaleOutput{Descending: descending}
	var group []int
	for i, v := range vs {
		pods = append(pods, &facts.Pod{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}, Spec: corev1.PodSpec{NodeName: v.node}}})
		out.Keys, out.Then = append(out.Keys, []float64{v.key}), append(out.Then, []float64{v.then})
		group = append(group, i)
	}
	var cs []corev1.TopologySpreadConstraint
	for _, key := range constraints {
		cs = append(cs, corev1.TopologySpreadConstraint{TopologyKey: key})
	}
	return OrderDeletions(pods, group, out, cs, cluster())
}

func TestOrder(t *testing.T) {
	tests := map[string]struct {
		victims     []victim
		constraints []string
		descending  []int
		want        []int
	}{
		"the lower key goes first": {
			[]victim{{"n0", 2, 0}, {"n1", 1, 0}}, nil, nil, []int{1, 0},
		},
		"or the higher, where a position descends": {
			[]victim{{"n0", 1, 0}, {"n1", 2, 0}}, nil, []int{0}, []int{1, 0},
		},
		"the second key decides between pods that are spread alike": {
			[]victim{{"n0", 1, 9}, {"n1", 1, 5}}, nil, nil, []int{1, 0},
		},
		"or descends": {
			[]victim{{"n0", 1, 5}, {"n1", 1, 9}}, nil, []int{1}, []int{1, 0},
		},
		"what is equal keeps its order": {
			[]victim{{"n0", 1, 1}, {"n1", 1, 1}, {"n2", 1, 1}}, nil, nil, []int{0, 1, 2},
		},
		"of two pods on one node one goes before a pod alone on its node": {
			[]victim{{"n0", 1, 0}, {"n1", 1, 5}, {"n1", 1, 6}}, nil, nil, []int{1, 0, 2},
		},
		"the most crowded node first": {
			[]victim{{"n0", 1, 0}, {"n1", 1, 0}, {"n1", 1, 0}, {"n2", 1, 0}, {"n2", 1, 0}, {"n2", 1, 0}}, nil, nil, []int{3, 1, 4, 0, 2, 5},
		},
		"the policy's key is stronger than the node": {
			[]victim{{"n0", 1, 0}, {"n1", 2, 0}, {"n1", 2, 0}}, nil, nil, []int{0, 1, 2},
		},
		"pods that are on no node share none": {
			[]victim{{"", 1, 2}, {"", 1, 1}, {"n0", 1, 3}}, nil, nil, []int{1, 0, 2},
		},
		"a crowded zone goes first": {
			[]victim{{"n0", 1, 0}, {"n2", 1, 0}, {"n3", 1, 0}}, []string{corev1.LabelTopologyZone}, nil, []int{1, 0, 2},
		},
		"in a zone a crowded node goes first": {
			[]victim{{"n0", 1, 0}, {"n1", 1, 0}, {"n1", 1, 0}, {"n2", 1, 0}, {"n3", 1, 0}}, []string{corev1.LabelTopologyZone}, nil, []int{1, 0, 3, 2, 4},
		},
		"by host name two pods of a node are crowded": {
			[]victim{{"n0", 1, 0}, {"n1", 1, 5}, {"n1", 1, 6}}, []string{corev1.LabelHostname}, nil, []int{1, 0, 2},
		},
		"by any label of nodes": {
			[]victim{{"n0", 1, 0}, {"n3", 1, 0}, {"n3", 1, 0}}, []string{"rack"}, nil, []int{1, 0, 2},
		},
		"a label that no node has spreads nothing": {
			[]victim{{"n0", 1, 2}, {"n1", 1, 1}}, []string{"nothing"}, nil, []int{1, 0},
		},
		"one group is no group": {[]victim{{"n0", 1, 1}}, []string{corev1.LabelTopologyZone}, nil, []int{0}},
		"no pods":               {nil, []string{corev1.LabelTopologyZone}, nil, []int{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := order(tc.victims, tc.constraints, tc.descending...); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// The rank of CS-07 in its own words, one pod at a time.
func rankBySpec(vs []victim, constraints []string) []float64 {
	topology := cluster()
	before := func(i, j int, inner []float64) bool { // i would be deleted before j
		a, b := vs[i], vs[j]
		switch {
		case a.key != b.key:
			return a.key < b.key
		case inner != nil && inner[i] != inner[j]:
			return inner[i] > inner[j]
		case a.then != b.then:
			return a.then < b.then
		}
		return i < j
	}
	position := func(i int, same func(j int) bool, inner []float64) (pos, n int) {
		for j := range vs {
			if same(j) {
				n++
				if j != i && before(j, i, inner) {
					pos++
				}
			}
		}
		return pos, n
	}
	node := make([]float64, len(vs))
	for i := range vs {
		if vs[i].node != "" {
			pos, n := position(i, func(j int) bool { return vs[j].node == vs[i].node }, nil)
			node[i] = float64(n - 1 - pos)
		}
	}
	if len(constraints) == 0 {
		return node
	}
	rank := make([]float64, len(vs))
	for _, key := range constraints {
		inner := node
		of := func(i int) string {
			if key == corev1.LabelHostname {
				return vs[i].node
			}
			return topology.NodeLabel(vs[i].node, key)
		}
		if key == corev1.LabelHostname {
			inner = nil
		}
		values := map[string]bool{}
		for i := range vs {
			values[of(i)] = true
		}
		delete(values, "")
		for i := range vs {
			if of(i) != "" {
				pos, n := position(i, func(j int) bool { return of(j) == of(i) }, inner)
				rank[i] += float64(n-pos) * math.Log(float64(len(values)+2))
			}
		}
	}
	return rank
}

func TestTheOrderIsThatOfTheSpecification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var vs []victim
		for range rapid.IntRange(0, 12).Draw(t, "pods") {
			vs = append(vs, victim{
				rapid.SampledFrom([]string{"", "n0", "n1", "n2", "n3", "n4", "unknown"}).Draw(t, "node"),
				float64(rapid.IntRange(0, 1).Draw(t, "key")), float64(rapid.IntRange(0, 2).Draw(t, "then")),
			})
		}
		constraints := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, "rack"}), 0, 3, rapid.ID).Draw(t, "constraints")
		rank := rankBySpec(vs, constraints)
		want := make([]int, len(vs))
		for i := range want {
			want[i] = i
		}
		sort.SliceStable(want, func(a, b int) bool {
			i, j := want[a], want[b]
			switch {
			case vs[i].key != vs[j].key:
				return vs[i].key < vs[j].key
			case rank[i] != rank[j]:
				return rank[i] > rank[j]
			}
			return vs[i].then < vs[j].then
		})
		if got := order(vs, constraints); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v of %v", got, want, vs)
		}
	})
}

// With a constraint by zone, and nothing else to tell pods apart, what stays after
// each deletion is spread over the zones as evenly as it can be.
func TestWhatStaysIsSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var vs []victim
		for range rapid.IntRange(1, 15).Draw(t, "pods") {
			vs = append(vs, victim{node: rapid.SampledFrom([]string{"n0", "n1", "n2", "n3", "n4", "n5"}).Draw(t, "node")})
		}
		left := map[string]int{}
		zone := func(i int) string { return cluster().NodePlace(vs[i].node).Zone }
		for i := range vs {
			left[zone(i)]++
		}
		for _, i := range order(vs, []string{corev1.LabelTopologyZone}) {
			most := 0
			for _, n := range left {
				most = max(most, n)
			}
			if left[zone(i)] < most {
				t.Fatalf("a pod of %s goes, where %d are left, but elsewhere are %d", zone(i), left[zone(i)], most)
			}
			left[zone(i)]--
		}
	})
}

func TestOtherGroupsDoNotCount(t *testing.T) {
	pods := []*facts.Pod{}
	out := rollout.ScaleOutput{}
	for i, node := range []string{"n0", "n0", "n1", "n0"} {
		pods = append(pods, &facts.Pod{Pod: &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}})
		out.Keys, out.Then = append(out.Keys, []float64{0}), append(out.Then, []float64{float64(-i)})
	}
	// Of the group only one is on n0, so its neighbours there do not make it crowded.
	if got := OrderDeletions(pods, []int{0, 2}, out, nil, cluster()); !slices.Equal(got, []int{2, 0}) {
		t.Errorf("got %v, want the one of the lower second key first", got)
	}
}
