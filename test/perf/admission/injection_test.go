// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestTableOfInjections(t *testing.T) {
	o := &injections{sets: []int{10}, clients: []int{1}}
	got := o.table(map[measured][]time.Duration{
		{"create", noSet, 1}:             {2 * time.Millisecond},
		{"create", matched + "10", 1}:    {5 * time.Millisecond, 6 * time.Millisecond},
		{"create", unmatched + "10", 1}:  {1500 * time.Microsecond},
		{"delete", noSet, 1}:             {time.Second},
		{"create", unmatched + "100", 1}: {time.Second},
		{"create", noSet, 10}:            {time.Second},
		{"create", "warming", 1}:         {time.Second},
	})
	want := `| clients | SidecarSets | of them select the pod | requests | p50 / p99 | added, p50 / p99 |
|---|---|---|---|---|---|
| 1 | none |  | 1 | 2.0 / 2.0 |  |
| 1 | 10 | one | 2 | 6.0 / 6.0 | 4.0 / 4.0 |
| 1 | 10 | none | 1 | 1.5 / 1.5 | -0.5 / -0.5 |
`
	if got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
