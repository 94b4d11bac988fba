// SPDX-License-Identifier: Apache-2.0

package record

import (
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/regatta-sh/regatta/engine/decision"
)

// MemorySize is roughly how many bytes a record holds in memory. Whatever a rule wrote, or a user, counts, wherever it is.
func MemorySize(r decision.Record) int {
	n := int(reflect.TypeFor[decision.Record]().Size())
	for _, s := range r.Rules {
		n += len(s) + 16
	}
	return n + len(r.Error) + sizeOf(reflect.ValueOf(r.Input), sampled, 0) + sizeOf(reflect.ValueOf(r.Output), everything, 0)
}

// How many elements of a list of structures are looked at.
const (
	// sampled are some, evenly spread over a list of facts; the others are taken to be like them, so that a decision about ten
	// thousand pods is not measured for longer than it took.
	sampled = 16
	// everything: rules write answers, and one that knew the sample could put long texts beside it.
	everything = math.MaxInt
)

func sizeOf(v reflect.Value, structures, depth int) int {
	if !v.IsValid() || depth > 20 {
		return 0
	}
	own := int(v.Type().Size())
	switch v.Kind() {
	case reflect.String:
		return own + v.Len()
	case reflect.Pointer, reflect.Interface:
		return own + sizeOf(v.Elem(), structures, depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			own += sizeOf(f, structures, depth+1) - int(f.Type().Size())
		}
		return own
	case reflect.Slice, reflect.Array:
		return own + sizeOfList(v, structures, depth)
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			own += sizeOf(it.Key(), structures, depth+1) + sizeOf(it.Value(), structures, depth+1) + 16
		}
	}
	return own
}

// sizeOfList is the size of the elements of a list. Lists of numbers, and of lists of them, are sampled always.
func sizeOfList(v reflect.Value, structures, depth int) int {
	element := v.Type().Elem()
	for element.Kind() == reflect.Slice || element.Kind() == reflect.Array {
		element = element.Elem()
	}
	switch element.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64, reflect.Bool:
		structures = sampled
	case reflect.String:
		structures = everything
	}
	n := min(v.Len(), structures)
	if n == 0 {
		return 0
	}
	sum := 0
	for i := range n {
		sum += sizeOf(v.Index(i*v.Len()/n), structures, depth+1)
	}
	return sum * v.Len() / n
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
