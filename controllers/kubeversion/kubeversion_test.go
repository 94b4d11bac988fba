// SPDX-License-Identifier: Apache-2.0

package kubeversion

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"
)

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name string
		info version.Info
		want string
	}{
		{"the oldest, of a provider", version.Info{Major: "1", Minor: "30+", GitVersion: "v1.30.1-eks"}, ""},
		{"an old one", version.Info{Major: "1", Minor: "28+", GitVersion: "v1.28.4-eks"}, "is Kubernetes v1.28.4-eks, want 1.30 or newer"},
		{"another major version", version.Info{Major: "2", Minor: "0", GitVersion: "v2.0.0"}, `says that it is "v2.0.0"`},
		{"no version", version.Info{}, `says that it is ""`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := CheckSupported(&tc.info)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestDegraded(t *testing.T) {
	for minor, want := range map[int]string{30: "resized in place", 33: "", NewestTested: "", NewestTested + 1: "the newest that was tested"} {
		got := strings.Join(ListDegraded(minor), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("of 1.%d it says %q, want %q", minor, got, want)
		}
	}
}

// The chart refuses what this refuses.
func TestTheChartSaysTheSame(t *testing.T) {
	text, err := os.ReadFile("../../charts/kruise/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(`kubeVersion: ">= 1.%d.0-0"`, OldestMinor); !strings.Contains(string(text), want) {
		t.Errorf("Chart.yaml does not have %s", want)
	}
}
