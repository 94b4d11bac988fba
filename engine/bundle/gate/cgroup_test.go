// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/regatta-sh/regatta/engine/bundle/gate"
)

func TestMemoryLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		left  uint64
		limit bool
	}{
		"nothing is limited without control groups": {},
		"version 2":                 {map[string]string{"memory.max": "536870912\n", "memory.current": "268435456\n", "memory.stat": "anon 1\ninactive_file 67108864\n"}, 288 << 20, true},
		"version 2 without a limit": {map[string]string{"memory.max": "max\n", "memory.current": "268435456\n"}, 0, false},
		"version 1":                 {map[string]string{"memory/memory.limit_in_bytes": "536870912\n", "memory/memory.usage_in_bytes": "134217728\n"}, 352 << 20, true},
		"version 1 without a limit": {map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n", "memory/memory.usage_in_bytes": "134217728\n"}, 0, false},
		"a container that is full":  {map[string]string{"memory.max": "536870912\n", "memory.current": "536870912\n"}, 0, true},
		"files that can be given back are no use of memory": {map[string]string{"memory.max": "536870912\n", "memory.current": "536870912\n", "memory.stat": "inactive_file 536870912\n"}, 480 << 20, true},
	} {
		files := fstest.MapFS{}
		for path, text := range tc.files {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if left, limited := gate.MemoryLeft(files); left != tc.left || limited != tc.limit {
			t.Errorf("%s: %d MiB are left, limited %t", name, left>>20, limited)
		}
	}
}

// A container without memory is not the bundle's fault.
func TestABundleIsNotCheckedWithoutMemory(t *testing.T) {
	g := gate.New(builtinBundle(t), gate.WithRunner(gate.Child{Left: func() (uint64, bool) { return 10 << 20, true }}))
	_, err := g.AdmitBundle(context.Background(), user(t, "own", map[string]string{"a.rego": "package extend.rollout.a\n\nrank := {}\n"}), nil, nil)
	var none *gate.NoMemoryError
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "has 10 MiB of memory left") {
		t.Errorf("got %v", err)
	}
}
