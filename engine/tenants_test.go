// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/heap"
	"github.com/regatta-sh/regatta/test/proptest"
)

func TestManyNamespacesWithPoliciesTakeBoundedMemory(t *testing.T) {
	const kept = 4 << 20
	many := 120
	if proptest.Race {
		many = 30
	}
	e, err := engine.New(policies.Builtin, engine.WithViewBytes(kept))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	own := bundle.Set{}
	bundles := 0
	for i := range many {
		own = append(own, tenant(t, fmt.Sprintf("ns%d", i), "package extend.rollout.own\nhold contains {\"reason\": \"Own\", \"message\": \"m\"} if input.workload.labels.x == \"y\""))
		bundles += own[i].HeapBytes()
	}
	before := heap.CountLiveBytes()
	if err := e.ActivateBundles(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	// What is kept, and 10 KiB for what is known of a namespace.
	most := kept + many*10<<10
	if grown := heap.CountLiveBytes() - before; grown > most {
		t.Errorf("%d namespaces take %d KiB, want %d at most", many, grown>>10, most>>10)
	}
	freeze := platform(t, "freeze", "package extend.rollout.freeze\nhold contains {\"reason\": \"Freeze\", \"message\": \"m\"} if input.workload.labels.f == \"y\"")
	if err := e.ActivateBundles(t.Context(), append(bundle.Set{freeze}, own...)); err != nil {
		t.Fatal(err)
	}
	most += 8 << 20 // the platform's, compiled
	if grown := heap.CountLiveBytes() - before; grown > most {
		t.Errorf("with another platform %d namespaces take %d KiB, want %d at most", many, grown>>10, most>>10)
	}
	runtime.KeepAlive(own)
}

func TestHeapBytesIsWhatABundleTakes(t *testing.T) {
	rules := "package extend.rollout.own\n"
	for i := range 300 {
		rules += fmt.Sprintf("helper_%d if { some c in input.containers; c.image == \"registry/%d\"; count(c.ports) > %d }\n", i, i, i)
	}
	list := func(element string, n int) string {
		out := `{"list": [`
		for range n {
			out += element + ","
		}
		return out + element + "]}"
	}
	data := "extend/rollout/own/data.json"
	for name, files := range map[string]map[string]string{
		"rules":   {"p.rego": rules},
		"strings": {data: list(`"abcdefgh"`, 10000)},
		"numbers": {data: list("1", 10000)},
		"arrays":  {data: list("[]", 10000)},
		"objects": {data: list(`{"a":1}`, 10000)},
	} {
		// What grows at the same time elsewhere counts along, and so does what is freed: the median leaves that out.
		took := make([]int, 7)
		var said int
		for i := range took {
			before := heap.CountLiveBytes()
			b, err := bundle.FromFiles("own", files, bundle.AsTenant("shop"))
			if err != nil {
				t.Fatal(err)
			}
			took[i], said = heap.CountLiveBytes()-before, b.HeapBytes()
			runtime.KeepAlive(b)
		}
		slices.Sort(took)
		if median := took[len(took)/2]; said < median-64<<10 || said > 6*median {
			t.Errorf("%s: %d bytes, and HeapBytes says %d", name, took, said)
		}
	}
}
