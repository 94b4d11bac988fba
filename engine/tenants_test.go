// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"runtime"
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
