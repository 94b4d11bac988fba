// SPDX-License-Identifier: Apache-2.0

package record

import (
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/regatta-sh/regatta/engine/decision"
)

// MemorySize is roughly how many bytes a record takes in memory. All texts of rules and users count, wherever they are.
func MemorySize(r decision.Record) int {
	n := int(reflect.TypeFor[decision.Record]().Size())
	for _, s := range r.Rules {
		n += len(s) + 16
	}
	return n + len(r.Error) + sizeOf(reflect.ValueOf(r.Input), sampled, 0) + sizeOf(reflect.ValueOf(r.Output), everything, 0)
}

// How many elements of a list of structures are measured.
const (
	// sampled is for lists of facts: some elements, evenly spread, represent the others, so that measuring a decision about
	// ten thousand pods does not take longer than the decision.
	sampled = 16
	// everything is for answers, which rules write: a rule that knew the sample could put long texts between its
	// elements.
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

// sizeOfList is the size of the elements of a list. Lists of numbers, and lists of such lists, are always
// sampled.
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
