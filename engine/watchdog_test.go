// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle"
)

func TestStrikesAreForgottenAfterAnHour(t *testing.T) {
	bundleOf := func(name string) *bundle.Bundle {
		b, err := bundle.FromFiles(name, map[string]string{"a.rego": "package extend.test." + name + "\nrank := 1"})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const minute = time.Minute
	for name, tc := range map[string]struct {
		at  []time.Duration
		out bool
	}{
		"three at once":                         {[]time.Duration{0, 0, 0}, true},
		"three within an hour":                  {[]time.Duration{0, 30 * minute, 59 * minute}, true},
		"three in more than one":                {[]time.Duration{0, 30 * minute, 60 * minute}, false},
		"one each forty minutes":                {[]time.Duration{0, 40 * minute, 80 * minute, 120 * minute, 160 * minute}, false},
		"three of many that are within an hour": {[]time.Duration{0, 70 * minute, 75 * minute, 129 * minute}, true},
		"a clock that goes back":                {[]time.Duration{90 * minute, 0, 0}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, out := &watchdog{}, false
			for _, at := range tc.at {
				w.countStrike(bundleOf("another"), time.Unix(0, 0).Add(at)) // must not count against this
				out = w.countStrike(bundleOf("this"), time.Unix(0, 0).Add(at))
			}
			if out != tc.out || (w.checkRolledBack(bundle.Set{bundleOf("this")}) != nil) != tc.out {
				t.Errorf("out: %t, want %t", out, tc.out)
			}
		})
	}
}
