// SPDX-License-Identifier: Apache-2.0

// Package statusthrottle bounds how often the status of an object is written while its pods come and
// go, so that many pods cost few writes, and a user's update of what was read just now does not
// meet a conflict each time.
package statusthrottle

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// WriteDelay is how long a status, a pointer to a struct like next, is to stay as it is: where only
// counts differ, until every has passed since the last write. It is 0 if next is to be written
// now. Who waits has to look again then, so that the last counts are written. Records are the
// names of fields that count for what they hold, as numbers do.
func WriteDelay(was, next any, every, since time.Duration, records ...string) time.Duration {
	if since >= every || !OnlyCounts(was, next, records...) {
		return 0
	}
	return every - since
}

// OnlyCounts reports whether two statuses, pointers to structs, differ in nothing but numbers other
// than generations, in records, and in the times and messages of conditions.
func OnlyCounts(a, b any, records ...string) bool {
	x, errX := withoutCounts(a, records)
	y, errY := withoutCounts(b, records)
	return errX == nil && errY == nil && equality.Semantic.DeepEqual(x, y)
}

func withoutCounts(status any, records []string) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, fmt.Errorf("encoding status: %w", err)
	}
	for _, name := range records {
		removeField(fields, name)
	}
	removeCounts(fields)
	return fields, nil
}

// removeCounts takes numbers out of an object and of what is in it.
func removeCounts(fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case int64:
			if name != "observedGeneration" {
				delete(fields, name)
			}
		case map[string]any:
			removeCounts(value)
		case []any:
			forEachObject(value, func(item map[string]any) {
				if name == "conditions" {
					delete(item, "lastUpdateTime")
					delete(item, "message")
				}
				removeCounts(item)
			})
		}
	}
}

// removeField takes the fields of a name out of an object and of what is in it.
func removeField(fields map[string]any, name string) {
	delete(fields, name)
	for _, value := range fields {
		switch value := value.(type) {
		case map[string]any:
			removeField(value, name)
		case []any:
			forEachObject(value, func(item map[string]any) { removeField(item, name) })
		}
	}
}

func forEachObject(list []any, do func(map[string]any)) {
	for _, item := range list {
		if item, ok := item.(map[string]any); ok {
			do(item)
		}
	}
}
