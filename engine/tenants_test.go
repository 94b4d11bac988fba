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
	// What is kept, and 10 KiB for what is known of a namespace; then the platform's, compiled.
	most := kept + many*10<<10
	mostWithPlatform := most + 8<<20
	// Evaluations that earlier tests gave up may end meanwhile, and count along: what a namespace takes is there each time.
	for try := 1; ; try++ {
		grown, withPlatform := measureNamespaces(t, many, kept)
		switch {
		case grown <= most && withPlatform <= mostWithPlatform:
			return
		case try == 3:
			t.Fatalf("%d namespaces take %d KiB, want %d at most; with another platform %d KiB, want %d at most",
				many, grown>>10, most>>10, withPlatform>>10, mostWithPlatform>>10)
		}
	}
}

// measureNamespaces returns how many bytes an engine takes for so many namespaces with policies, and how many after those of the platform
// have changed.
func measureNamespaces(t *testing.T, many, kept int) (grown, withPlatform int) {
	t.Helper()
	e, err := engine.New(policies.Builtin, engine.WithViewBytes(kept))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	own := bundle.Set{}
	for i := range many {
		own = append(own, tenant(t, fmt.Sprintf("ns%d", i), "package extend.rollout.own\nhold contains {\"reason\": \"Own\", \"message\": \"m\"} if input.workload.labels.x == \"y\""))
		own[i].HeapBytes()
	}
	before := heap.CountLiveBytes()
	if err := e.ActivateBundles(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	grown = heap.CountLiveBytes() - before
	freeze := platform(t, "freeze", "package extend.rollout.freeze\nhold contains {\"reason\": \"Freeze\", \"message\": \"m\"} if input.workload.labels.f == \"y\"")
	if err := e.ActivateBundles(t.Context(), append(bundle.Set{freeze}, own...)); err != nil {
		t.Fatal(err)
	}
	withPlatform = heap.CountLiveBytes() - before
	runtime.KeepAlive(own)
	return grown, withPlatform
}
