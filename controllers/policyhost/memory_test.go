// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"testing"
	"testing/fstest"
)

func TestDecisionMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		file, text string
		want       uint64
	}{
		"the chart's 512 MiB":            {"sys/fs/cgroup/memory.max", "536870912\n", 128 << 20},
		"as version 1 of cgroups has it": {"sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n", 128 << 20},
		"much":                           {"sys/fs/cgroup/memory.max", "8589934592\n", 512 << 20},
		"little":                         {"sys/fs/cgroup/memory.max", "300000000\n", 64 << 20},
		"less than is reserved":          {"sys/fs/cgroup/memory.max", "100000000\n", 64 << 20},
		"no limit":                       {"sys/fs/cgroup/memory.max", "max\n", 512 << 20},
		"no limit, as version 1 of cgroups has it": {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n", 512 << 20},
		"no cgroups": {"etc/hosts", "", 512 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decisionMemory(fstest.MapFS{tc.file: {Data: []byte(tc.text)}}, 256<<20); got != tc.want {
				t.Errorf("got %d MiB, want %d", got>>20, tc.want>>20)
			}
		})
	}
}
