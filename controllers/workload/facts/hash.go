package facts

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/regatta-sh/regatta/engine/decision"
)

// hash fingerprints facts within this process.
func hash(seed maphash.Seed, f *decision.PodFacts) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	text := func(s string) {
		number(&h, int64(len(s)))
		h.WriteString(s) //nolint:errcheck // never fails
	}
	text(f.Name)
	for _, k := range slices.Sorted(maps.Keys(f.Labels)) {
		text(k)
		text(f.Labels[k])
	}
	text(f.Node)
	text(f.Zone)
	text(f.Region)
	text(f.State)
	updated := int64(0)
	if f.Updated {
		updated = 1
	}
	for _, n := range []int64{
		updated, int64(f.Assigned), int64(f.Phase), int64(f.Ready), f.ReadySince, f.Created, int64(f.Restarts),
		int64(f.OrderLevel), int64(f.OrderValue), int64(f.DeletionCost),
	} {
		number(&h, n)
	}
	for _, m := range f.Matches {
		number(&h, int64(m))
	}
	return h.Sum64()
}

func number(h *maphash.Hash, n int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:]) //nolint:errcheck // never fails
}
