// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// CollectFacts returns the facts that a rule reads, by their paths below the input. An object of
// objects is listed as one fact per inner object, to keep each fact short. The paths in without are
// left out.
func CollectFacts(at map[string]any, without ...string) []Fact {
	var out []Fact
	var tell func(name string, v any)
	tell = func(name string, v any) {
		if object, ok := v.(map[string]any); ok && hasNestedObject(object) {
			for k, inner := range object {
				tell(name+"."+k, inner)
			}
			return
		}
		if text, ok := v.(string); ok {
			out = append(out, Fact{Name: name, Value: text})
			return
		}
		text, err := json.Marshal(v)
		if err != nil { // impossible: the value came from JSON
			return
		}
		out = append(out, Fact{Name: name, Value: string(text)})
	}
	for path, v := range at {
		if name := strings.Replace(path, "input.", "", 1); !slices.Contains(without, name) {
			tell(name, v)
		}
	}
	slices.SortFunc(out, func(a, b Fact) int { return cmp.Compare(a.Name, b.Name) })
	// A rule may read a group and one of its counts. The group shows both, so the count is left out.
	return slices.DeleteFunc(slices.Clone(out), func(f Fact) bool {
		return slices.ContainsFunc(out, func(o Fact) bool { return strings.HasPrefix(f.Name, o.Name+".") })
	})
}

func hasNestedObject(object map[string]any) bool {
	for _, v := range object {
		if _, ok := v.(map[string]any); ok {
			return true
		}
	}
	return false
}
