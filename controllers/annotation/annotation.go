// SPDX-License-Identifier: Apache-2.0

// Package annotation reads annotations and other texts of users that are JSON.
package annotation

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// MaxSize is the size of the longest text that is read. The API server stores no object with larger
// annotations, but dry runs and webhooks see objects before that limit is checked.
const MaxSize = 256 << 10

// Decode reads the JSON text of the annotation or field with the name. A map that it returns is
// never nil, and no map or slice in it has an element that is a nil pointer: null counts as a missing
// element.
func Decode[T any](name, text string) (T, error) {
	var out, none T
	if len(text) > MaxSize {
		return removeNullElements(none), fmt.Errorf("reading annotation %s: it has %d bytes, and may have %d", name, len(text), MaxSize)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return removeNullElements(none), fmt.Errorf("reading annotation %s: %w", name, err)
	}
	return removeNullElements(out), nil
}

// removeNullElements returns v without elements that are null.
func removeNullElements[T any](v T) T {
	value := reflect.ValueOf(&v).Elem()
	switch value.Kind() {
	case reflect.Map:
		if value.IsNil() {
			value.Set(reflect.MakeMap(value.Type()))
		}
		if isPointer(value.Type().Elem()) {
			for _, key := range value.MapKeys() {
				if value.MapIndex(key).IsNil() {
					value.SetMapIndex(key, reflect.Value{})
				}
			}
		}
	case reflect.Slice:
		if isPointer(value.Type().Elem()) {
			kept := reflect.MakeSlice(value.Type(), 0, value.Len())
			for i := range value.Len() {
				if e := value.Index(i); !e.IsNil() {
					kept = reflect.Append(kept, e)
				}
			}
			value.Set(kept)
		}
	case reflect.Pointer:
		if value.IsNil() {
			value.Set(reflect.New(value.Type().Elem()))
		}
	}
	return v
}

func isPointer(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Interface:
		return true
	}
	return false
}
