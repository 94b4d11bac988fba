// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/test/heap"
)

// What else grows or shrinks in the process would count along, so no test of this package leaves a goroutine.
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
