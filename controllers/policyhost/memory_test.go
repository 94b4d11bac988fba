// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"os"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/regatta-sh/regatta/engine"
)

func TestDecisionMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		file, text string
		want       uint64
	}{
		"the chart's 512 MiB":            {"memory.max", "536870912\n", 128 << 20},
		"as version 1 of cgroups has it": {"memory/memory.limit_in_bytes", "536870912\n", 128 << 20},
		"much":                           {"memory.max", "8589934592\n", 512 << 20},
		"little":                         {"memory.max", "300000000\n", 64 << 20},
		"less than is reserved":          {"memory.max", "100000000\n", 64 << 20},
		"no limit":                       {"memory.max", "max\n", 512 << 20},
		"no limit, as version 1 of cgroups has it": {"memory/memory.limit_in_bytes", "9223372036854771712\n", 512 << 20},
		"no cgroups": {"etc/hosts", "", 512 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decisionMemory(fstest.MapFS{tc.file: {Data: []byte(tc.text)}}, 256<<20); got != tc.want {
				t.Errorf("got %d MiB, want %d", got>>20, tc.want>>20)
			}
		})
	}
}

func TestPolicyMemory(t *testing.T) {
	chart := fstest.MapFS{"memory.max": {Data: []byte("536870912\n")}}
	if tenants, views := policyMemory(chart); tenants != engine.DefaultTenantBytes || views != engine.DefaultViewBytes {
		t.Errorf("with the chart's limit %d and %d MiB, want the defaults", tenants>>20, views>>20)
	}
	double := fstest.MapFS{"memory.max": {Data: []byte("1073741824\n")}}
	if tenants, views := policyMemory(double); tenants != 2*engine.DefaultTenantBytes || views != 2*engine.DefaultViewBytes {
		t.Errorf("with twice the limit %d and %d MiB", tenants>>20, views>>20)
	}
	if tenants, views := policyMemory(fstest.MapFS{}); tenants != engine.DefaultTenantBytes || views != engine.DefaultViewBytes {
		t.Errorf("without a limit %d and %d MiB", tenants>>20, views>>20)
	}
}

func TestLimitHeap(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	large := fstest.MapFS{"memory.max": {Data: []byte("107374182400\n")}}
	t.Setenv("GOMEMLIMIT", "off")
	if got := LimitHeap(large); got != 0 || debug.SetMemoryLimit(-1) != was {
		t.Errorf("GOMEMLIMIT is set, and the limit became %d", got)
	}
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil { // Setenv puts it back
		t.Fatal(err)
	}
	if got := LimitHeap(fstest.MapFS{"memory.max": {Data: []byte("max\n")}}); got != 0 || debug.SetMemoryLimit(-1) != was {
		t.Errorf("without a limit it became %d", got)
	}
	if got := LimitHeap(large); got != 96636764160 || debug.SetMemoryLimit(-1) != got {
		t.Errorf("the limit is %d, want nine tenths", got)
	}
}
