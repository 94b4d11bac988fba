// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/node"
)

func inZone(zone string, names ...string) (out []node.Candidate) {
	for _, name := range names {
		out = append(out, node.Candidate{Name: name, Groups: map[string]string{"zone": zone}})
	}
	return out
}

func TestWhichNodesBegin(t *testing.T) {
	nodes := append(inZone("a", "a1", "a2", "a3"), inZone("b", "b1", "b2")...)
	all := node.Hold{Rule: "all", Reason: "R", Message: "m"}
	zone := func(zone string, room *int) node.Hold {
		return node.Hold{Rule: zone, Reason: "R", Message: "m", Where: map[string]string{"zone": zone}, Room: room}
	}
	for _, tc := range []struct {
		name string
		free int
		out  node.ImagesOutput
		want []string
		held string
	}{
		{"as many as the answer says", 4, node.ImagesOutput{Begin: 2}, []string{"a1", "a2"}, ""},
		{"no more than are free, whatever it says", 2, node.ImagesOutput{Begin: 1000}, []string{"a1", "a2"}, ""},
		{"none where none is free", 0, node.ImagesOutput{Begin: 5}, nil, ""},
		{"none that is held, whatever it says", 5, node.ImagesOutput{Begin: 5, Holds: []node.Hold{all}}, nil, "all"},
		{"a hold is reported where none is free", 0, node.ImagesOutput{Holds: []node.Hold{all}}, nil, "all"},
		{"others than those of a zone that is held", 5, node.ImagesOutput{Begin: 5, Holds: []node.Hold{zone("a", nil)}}, []string{"b1", "b2"}, "a"},
		{"as many of a zone as there is room", 5, node.ImagesOutput{Begin: 5, Holds: []node.Hold{zone("a", ptr.To(1)), zone("b", ptr.To(1))}}, []string{"a1", "b1"}, "a"},
		{"none where the room is less than none", 5, node.ImagesOutput{Begin: 5, Holds: []node.Hold{zone("a", ptr.To(-2))}}, []string{"b1", "b2"}, "a"},
		{"as many as all holds have room for", 5, node.ImagesOutput{Begin: 5, Holds: []node.Hold{{Rule: "all", Room: ptr.To(3)}, zone("a", ptr.To(2))}}, []string{"a1", "a2", "b1"}, "a"},
		{"none that is denied, whatever it says", 5, node.ImagesOutput{Begin: 5, Denials: []node.Denial{{Reason: "R"}}}, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, held := tc.out.NodesToPull(node.ImagesInput{Free: tc.free}, nodes)
			rule := ""
			if held != nil {
				rule = held.Rule
			}
			if !slices.Equal(got, tc.want) || rule != tc.held {
				t.Errorf("got %v held by %q, want %v held by %q", got, rule, tc.want, tc.held)
			}
		})
	}
}

// Whatever an answer says, no more nodes begin than are free, and none beyond the room of
// a hold that it is under.
func TestTheClampHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test that can be repeated
	for range 2000 {
		var nodes []node.Candidate
		for i := range random.IntN(12) {
			nodes = append(nodes, inZone(string(rune('a'+random.IntN(3))), fmt.Sprint(i))...)
		}
		in, out := node.ImagesInput{Free: random.IntN(6)}, node.ImagesOutput{Begin: random.IntN(20)}
		for range random.IntN(4) {
			h := node.Hold{Room: ptr.To(random.IntN(4) - 1)}
			if random.IntN(3) > 0 {
				h.Where = map[string]string{"zone": string(rune('a' + random.IntN(3)))}
			}
			out.Holds = append(out.Holds, h)
		}
		begin, _ := out.NodesToPull(in, nodes)
		if len(begin) > in.Free {
			t.Fatalf("%d begin, %d are free", len(begin), in.Free)
		}
		for _, h := range out.Holds {
			n := 0
			for _, c := range nodes {
				if slices.Contains(begin, c.Name) && decision.IsSubset(h.Where, c.Groups) {
					n++
				}
			}
			if n > max(*h.Room, 0) {
				t.Fatalf("%d begin under a hold with room for %d", n, *h.Room)
			}
		}
	}
}
