// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// A buffer has the latest records of any sizes, within both bounds, in their order and each once: also where it became full by
// bytes with few records, and gets many small ones then.
func TestBufferKeepsRecordsOfAnySizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 40).Draw(t, "count")
		most := rapid.IntRange(2_000, 20_000).Draw(t, "bytes")
		b := record.NewBuffer(record.WithCount(count), record.WithBytes(most))
		var want []decision.Record // the latest last
		bytes := 0
		for id := range uint64(rapid.IntRange(1, 120).Draw(t, "records")) {
			r := rec(id+1, "w", "")
			r.Error = strings.Repeat("x", rapid.SampledFrom([]int{0, 0, 0, 500, 5_000}).Draw(t, "size"))
			size := record.MemorySize(r)
			for len(want) > 0 && (len(want) >= count || bytes+size > most) {
				bytes -= record.MemorySize(want[0])
				want = want[1:]
			}
			want, bytes = append(want, r), bytes+size
			b.RecordDecision(r)
			var got, ids []uint64
			for _, r := range b.FindRecords(record.Query{}) {
				got = append(got, r.ID)
			}
			for _, r := range slices.Backward(want) {
				ids = append(ids, r.ID)
			}
			if !slices.Equal(got, ids) {
				t.Fatalf("after record %d there are %v, want %v", id+1, got, ids)
			}
			if n, kept := b.Len(); n != len(want) || kept != bytes {
				t.Fatalf("after record %d there are %d of %d bytes, want %d of %d", id+1, n, kept, len(want), bytes)
			}
		}
	})
}
