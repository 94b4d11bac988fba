// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Bounds of the values that a report lists of a fact.
const (
	maxShown      = 32
	maxShownBytes = 256
)

// describeSpaces reports the facts that vary, and their values.
func (s *searcher) describeSpaces(spaces []*space) {
	facts := map[string]*FactReport{}
	for _, sp := range spaces {
		for _, d := range sp.dims {
			name := d.of
			if name == "" {
				name = d.fact
			}
			if strings.Contains(name, "[0]") || strings.Contains(name, "[1]") || strings.Contains(name, "[2]") {
				continue
			}
			if facts[name] == nil {
				facts[name] = &FactReport{Name: name}
			}
			facts[name].Values = max(facts[name].Values, len(d.choices))
			facts[name].addTried(d.choices)
		}
		for name := range sp.leftOut {
			s.addUnvaried(name)
		}
	}
	s.report.Bases, s.report.Elements = len(spaces), s.Limits.Elements
	s.report.Facts, s.report.Values = []FactReport{}, 0
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		s.report.Facts = append(s.report.Facts, *facts[name])
		s.report.Values += facts[name].Values
	}
}

// addTried adds the values of choices, each once.
func (f *FactReport) addTried(choices []choice) {
	for _, c := range choices {
		if c.kind != set || len(f.Tried) >= maxShown {
			continue
		}
		value := c.value
		if text, ok := value.(string); ok && len(text) > maxShownBytes {
			value = strings.ToValidUTF8(text[:maxShownBytes], "") + "..."
		}
		if !slices.ContainsFunc(f.Tried, func(o any) bool { return reflect.DeepEqual(o, value) }) {
			f.Tried = append(f.Tried, value)
		}
	}
}
