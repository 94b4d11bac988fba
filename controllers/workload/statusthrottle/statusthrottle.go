// SPDX-License-Identifier: Apache-2.0

// Package statusthrottle bounds how often the status of an object is written while its pods
// change. Then many changes of pods lead to few writes, and a user's update of an object that was just read does not
// meet a conflict each time.
package statusthrottle

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

// WriteDelay returns how long to delay the write of next, a status, which is a pointer to a struct like was. If only
// counts differ, the delay lasts until every has passed since the last write. Otherwise it is 0, and next is to be written
// now. After a delay the caller has to reconcile again, so that the last counts are written. records are the
// names of fields that are treated as counts, although they are no numbers.
func WriteDelay(was, next any, every, since time.Duration, records ...string) time.Duration {
	if since >= every || !OnlyCounts(was, next, records...) {
		return 0
	}
	return every - since
}

// OnlyCounts reports whether two statuses, pointers to structs, differ only in numbers other
// than generations, in records, in the times and messages of conditions, and in the conditions of package kstatus, which say in words
// what the numbers do.
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

// removeCounts removes numbers from an object and from the objects in it.
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
			if name == "conditions" {
				value = withoutSummary(value)
				fields[name] = value
			}
			forEachObject(value, removeCounts)
		}
	}
}

// withoutSummary returns the conditions but those of package kstatus, without the time of the last update and the message.
func withoutSummary(conditions []any) []any {
	forEachObject(conditions, func(c map[string]any) {
		delete(c, "lastUpdateTime")
		delete(c, "message")
	})
	return kstatus.FilterConditions(conditions)
}

// removeField removes the fields with a name from an object and from the objects in it.
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
