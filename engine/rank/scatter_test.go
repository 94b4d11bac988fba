// SPDX-License-Identifier: Apache-2.0

package rank_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/rank"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

// Pods are written as text: each letter is the value of the label "k" of a pod,
// a dot is a pod without it. waiting are the first of all.
func TestScatter(t *testing.T) {
	for name, tc := range map[string]struct {
		waiting string
		others  string // pods of the workload that do not wait
		terms   string // values of the terms
		want    string
	}{
		"no pods":                            {"", "", "a", ""},
		"one pod":                            {"a", "", "a", "a"},
		"no terms":                           {"aa..", "", "", "aa.."},
		"a term that matches nothing":        {"aa..", "", "x", "aa.."},
		"one that matches stays where it is": {"a...", "", "a", "a..."},
		"one that does not match stays too":  {"aaa.", "", "a", "aaa."},
		"two and two: the last that matches is last": {"aa..", "", "a", "a..a"},
		"spread evenly":        {"aaa......", "", "a", "a...a...a"},
		"spread with one over": {"aaaa.......", "", "a", "a..a..a...a"},
		"more match than not":  {"aaaaaa..", "", "a", "aaa.aa.a"},
		"as many as not":       {"aaaa....", "", "a", "a.a.a..a"},
		// Of all pods 1 of 2 matches, so the waiting ones go one by one, and
		// what there is too much of goes first.
		"fewer match in all than wait: the others first": {"aa......", "aaaaaa", "a", ".....a.a"},
		"more match in all than wait":                    {"aaaa..", "......", "a", "aa.a.a"},
		"two terms, the one that matches more first":     {"aabbb.....", "", "ab", "ab..b...ba"},
		"a term that is there twice counts once":         {"aa..", "", "aa", "a..a"},
		"an empty value means pods without the label":    {"..aa", "", " ", ".aa."},
	} {
		t.Run(name, func(t *testing.T) {
			all := tc.waiting + tc.others
			labels := func(i int, key string) string {
				if key != "k" || all[i] == '.' {
					return ""
				}
				return all[i : i+1]
			}
			var terms []points.ScatterTerm
			for _, v := range tc.terms {
				terms = append(terms, points.ScatterTerm{Key: "k", Value: strings.TrimSpace(string(v))})
			}
			var waiting []int
			for i := range tc.waiting {
				waiting = append(waiting, i)
			}
			var got strings.Builder
			for _, i := range rank.ScatterPods(waiting, terms, len(all), labels) {
				got.WriteByte(all[i])
			}
			if got.String() != tc.want {
				t.Errorf("got %s, want %s", got.String(), tc.want)
			}
		})
	}
}

func TestScatterLosesAndReordersNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "c"}), 0, 60).Draw(t, "all")
		waiting := rapid.Permutation(everyone(len(all))).Draw(t, "waiting")
		waiting = waiting[:rapid.IntRange(0, len(all)).Draw(t, "n")]
		values := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "x"}), 0, 4).Draw(t, "terms")
		var terms []points.ScatterTerm
		for _, v := range values {
			terms = append(terms, points.ScatterTerm{Key: "k", Value: v})
		}
		before := slices.Clone(waiting)
		got := rank.ScatterPods(waiting, terms, len(all), func(i int, _ string) string { return all[i] })
		a, b := slices.Clone(before), slices.Clone(got)
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			t.Fatalf("%v became %v", before, got)
		}
		if len(values) == 1 {
			// Those that match keep their order among each other.
			only := func(list []int) (out []int) {
				for _, i := range list {
					if all[i] == values[0] {
						out = append(out, i)
					}
				}
				return out
			}
			if !slices.Equal(only(before), only(got)) {
				t.Fatalf("%v became %v", before, got)
			}
		}
	})
}

func everyone(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
