// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name    string
		options Options
		want    string
	}{
		{"nothing said is fine", Options{}, ""},
		{"a name must fit", Options{Name: "No Name"}, "no name for a cluster"},
		{"nodes cannot be negative", Options{Simulated: -1}, "cannot be negative"},
		{"real nodes have their limit", Options{Real: 65}, "more than the 64"},
		{"so have simulated ones", Options{Simulated: 100000}, "more than the 7750"},
		{"zones have letters", Options{Zones: 27}, "between 1 and 26"},
		{"a CSI driver needs kubelets", Options{CSI: true, Simulated: 1}, "needs real nodes"},
		{"the rate cannot be negative", Options{SchedulerQPS: -1}, "request rate"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.options.withDefaults().validate()
			if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	err := Options{Real: 1}.withDefaults().validate()
	if root := os.Geteuid() == 0; (err == nil) != root {
		t.Errorf("real nodes, as root %v: %v", root, err)
	}
}

func TestDownOfNothing(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var told strings.Builder
	if err := Down(t.Context(), "nothing", &told); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(told.String(), "there is no cluster") {
		t.Errorf("told %q", told.String())
	}
}
