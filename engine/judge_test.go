// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/bundle"
)

// TestJudge has decisions about the namespace shop that are late where all bundles of one of
// the late lists take part.
func TestJudge(t *testing.T) {
	many := strings.Fields("a b c d e f g h i j k l m n o p q r s t u v w x y z")
	for name, tc := range map[string]struct {
		platform, canaries, tenants []string // from the oldest to the newest
		late                        [][]string
		broken                      map[string]string // does not compile without
		hides                       map[string]string // replaces the point, so that another is not asked
		stuck                       bool
		want                        string
		most                        int // trials
	}{
		"nobody, where the machine was busy":        {platform: many, want: "", most: 2},
		"nobody, where the built-in policy is late": {platform: many, late: [][]string{{}}, want: "", most: 1},
		"one of one":                {platform: many[:1], late: [][]string{{"a"}}, want: "a", most: 2},
		"the oldest of many":        {platform: many, late: [][]string{{"a"}}, want: "a", most: 12},
		"one in the middle of many": {platform: many, late: [][]string{{"k"}}, want: "k", most: 12},
		"the newest of many":        {platform: many, late: [][]string{{"z"}}, want: "z", most: 12},
		"one that is stuck":         {platform: many, late: [][]string{{"k"}}, stuck: true, want: "k", most: 11},
		"two at once":               {platform: many, late: [][]string{{"c"}, {"w"}}, want: "c w", most: 24},
		"all":                       {platform: many[:5], late: [][]string{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}}, want: "a b c d e", most: 30},
		"the newest of two that are late together": {platform: many, late: [][]string{{"c", "w"}}, want: "w", most: 14},
		"the newest of three":                      {platform: many, late: [][]string{{"a", "m", "n"}}, want: "n", most: 14},
		"one that is late alone and with another":  {platform: many, late: [][]string{{"c"}, {"c", "w"}}, want: "c", most: 14},
		"the tenant, and neither canary nor platform": {
			platform: []string{"a", "b"}, canaries: []string{"c"}, tenants: []string{"t", "u"}, late: [][]string{{"t"}}, want: "t", most: 6,
		},
		"the tenant, where it is late with one of the platform": {
			platform: []string{"a", "b"}, tenants: []string{"t", "u"}, late: [][]string{{"a", "u"}}, want: "u", most: 6,
		},
		"the canary, and neither tenant nor platform": {
			platform: []string{"a", "b"}, canaries: []string{"c", "d"}, tenants: []string{"t"}, late: [][]string{{"d"}}, want: "d", most: 6,
		},
		"the platform before the tenant, where both are late": {
			platform: []string{"a", "b"}, tenants: []string{"t"}, late: [][]string{{"t"}, {"b"}}, want: "b", most: 6,
		},
		"one that another needs": {platform: []string{"a", "b", "c", "d"}, late: [][]string{{"b"}}, broken: map[string]string{"c": "b"}, want: "b", most: 20},
		"one that needs another": {platform: []string{"a", "b", "c", "d"}, late: [][]string{{"c"}}, broken: map[string]string{"c": "d"}, want: "c", most: 20},
		"not the one that another hides": {
			platform: []string{"a", "b", "c"}, late: [][]string{{"a"}, {"c"}}, hides: map[string]string{"a": "b"}, want: "c", most: 20,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var set bundle.Set
			for _, n := range tc.platform {
				set = append(set, &bundle.Bundle{Kind: bundle.Platform, Name: n})
			}
			for _, n := range tc.canaries {
				set = append(set, &bundle.Bundle{Kind: bundle.Platform, Name: n, Canary: []string{"shop"}})
			}
			for _, n := range tc.tenants {
				set = append(set, &bundle.Bundle{Kind: bundle.Tenant, Name: n, Namespace: "shop"})
			}
			set = append(set, &bundle.Bundle{Kind: bundle.Platform, Name: "withheld", Withheld: true})
			trials := 0
			again := func(set bundle.Set) trial {
				trials++
				in := map[string]bool{}
				for _, b := range set.DecidingIn("shop") {
					in[b.Name] = true
				}
				for b, needs := range tc.broken {
					if in[b] && !in[needs] {
						return broken
					}
				}
				for hidden, by := range tc.hides {
					in[hidden] = in[hidden] && !in[by]
				}
				for _, together := range tc.late {
					if !slices.ContainsFunc(together, func(n string) bool { return !in[n] }) {
						return late
					}
				}
				return inTime
			}
			var got []string
			asGiven := func(set bundle.Set) bundle.Set { return set }
			for _, b := range findFaultyBundles(set, "shop", asGiven, again, tc.stuck) {
				got = append(got, b.Name)
			}
			slices.Sort(got)
			if fmt.Sprint(strings.Join(got, " ")) != tc.want || trials > tc.most {
				t.Errorf("to blame are %v after %d trials, want %s after %d at most", got, trials, tc.want, tc.most)
			}
			left := trials / 2
			cut := func(set bundle.Set) trial {
				if left--; left < 0 {
					return spent
				}
				return again(set)
			}
			for _, b := range findFaultyBundles(set, "shop", asGiven, cut, tc.stuck) {
				if !strings.Contains(" "+tc.want+" ", " "+b.Name+" ") && tc.hides == nil {
					t.Errorf("%s is to blame when there is no more time", b.Name)
				}
			}
		})
	}
}
