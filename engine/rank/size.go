// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// How many bytes are counted for each remembered object, besides its texts and numbers.
const (
	memoBytes  = 512 // with its share of the map of workloads
	placeBytes = 200 // with its share of the map of pods
	termBytes  = 128 // with its share of its container

	// deadBytes is how many bytes of unused places a workload may keep in addition to as many as its used places take.
	deadBytes = 64 << 10
)

// sizeOfRow is about how many bytes the place of a pod takes.
func sizeOfRow(uid string, r *row) int {
	n := placeBytes + len(uid) + 8*(len(r.key)+len(r.lead))
	for i := range r.holds {
		n += r.holds[i].CountBytes()
	}
	return n
}

// sizeOfValue is about how many bytes a value takes.
func sizeOfValue(v ast.Value) int {
	n := termBytes
	switch v := v.(type) {
	case ast.String:
		n += len(v)
	case ast.Number:
		n += len(v)
	case *ast.Array:
		v.Foreach(func(t *ast.Term) { n += sizeOfValue(t.Value) })
	case ast.Set:
		v.Foreach(func(t *ast.Term) { n += sizeOfValue(t.Value) })
	case ast.Object:
		v.Foreach(func(key, value *ast.Term) { n += sizeOfValue(key.Value) + sizeOfValue(value.Value) })
	}
	return n
}
