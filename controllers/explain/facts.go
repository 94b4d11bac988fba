// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// CollectFacts are the facts that a rule looks at, by their paths below the input, each
// short: a group of groups is listed group by group. Those that go without saying
// are left out.
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
		if err != nil { // it came from JSON
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
	// A rule may look at a group and at one of its counts: the group tells both.
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
