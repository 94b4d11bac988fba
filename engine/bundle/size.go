// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"

	"github.com/open-policy-agent/opa/v1/ast"
)

// How many bytes of the heap parts of a bundle take, a little more than was measured on 64 bits. A test checks them.
const (
	nodeBytes   = 88 // a term, an expression or a rule of a module
	scalarBytes = 64
	arrayBytes  = 128
	objectBytes = 400
	entryBytes  = 128 // of an object
)

// HeapBytes estimates how many bytes of the heap the bundle takes while it is active: its sources, the parsed
// modules, and its data.
func (b *Bundle) HeapBytes() int { return b.heapBytes }

func (b *Bundle) estimateHeapBytes() (sum int) {
	for _, text := range b.Files {
		sum += len(text)
	}
	for _, modules := range []map[string]*ast.Module{b.Modules, b.Tests} {
		for _, m := range modules {
			ast.NewGenericVisitor(func(any) bool {
				sum += nodeBytes
				return false
			}).Walk(m)
		}
	}
	return sum + dataBytes(b.Data, 2) // an object is stored in the document and in the merged data
}

func dataBytes(value any, copies int) int {
	switch v := value.(type) {
	case map[string]any:
		sum := copies * (objectBytes + len(v)*entryBytes)
		for key, below := range v {
			sum += len(key) + dataBytes(below, copies)
		}
		return sum
	case []any:
		sum := arrayBytes
		for _, below := range v {
			sum += dataBytes(below, 1)
		}
		return sum
	case string:
		return scalarBytes + len(v)
	case json.Number:
		return scalarBytes + len(v)
	}
	return scalarBytes
}
