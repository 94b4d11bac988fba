// SPDX-License-Identifier: Apache-2.0

package record

import (
	"maps"
	"reflect"
	"slices"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Size is roughly how many bytes a record holds in memory.
func Size(r decision.Record) int {
	n := int(reflect.TypeFor[decision.Record]().Size())
	for _, s := range r.Rules {
		n += len(s) + 16
	}
	return n + len(r.Error) + sizeOf(reflect.ValueOf(r.Input), 0) + sizeOf(reflect.ValueOf(r.Output), 0)
}

// sampled is how many elements of a list are looked at, evenly spread over it; the
// others are taken to be like them, so that a decision about ten thousand pods is not
// measured for longer than it took.
const sampled = 16

func sizeOf(v reflect.Value, depth int) int {
	if !v.IsValid() || depth > 20 {
		return 0
	}
	own := int(v.Type().Size())
	switch v.Kind() {
	case reflect.String:
		return own + v.Len()
	case reflect.Pointer, reflect.Interface:
		return own + sizeOf(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			own += sizeOf(f, depth+1) - int(f.Type().Size())
		}
		return own
	case reflect.Slice, reflect.Array:
		n := min(v.Len(), sampled)
		if n == 0 {
			return own
		}
		sum := 0
		for i := range n {
			sum += sizeOf(v.Index(i*v.Len()/n), depth+1)
		}
		return own + sum*v.Len()/n
	case reflect.Map:
		sum, n := 0, 0
		for it := v.MapRange(); it.Next() && n < sampled; n++ {
			sum += sizeOf(it.Key(), depth+1) + sizeOf(it.Value(), depth+1) + 16
		}
		if n == 0 {
			return own
		}
		return own + sum*v.Len()/n
	}
	return own
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
