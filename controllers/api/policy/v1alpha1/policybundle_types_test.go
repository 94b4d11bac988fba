// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
)

func TestArtifactIs(t *testing.T) {
	whole := strings.Repeat("a", 12) + strings.Repeat("1", 52)
	twin := strings.Repeat("a", 12) + strings.Repeat("2", 52)
	artifact, older := &PolicyArtifact{Revision: whole[:12], Content: whole}, &PolicyArtifact{Revision: whole[:12]}
	for name, tc := range map[string]struct {
		of      *PolicyArtifact
		content string
		want    bool
	}{
		"the same":                          {artifact, whole, true},
		"one that begins with the same":     {artifact, twin, false},
		"of an older manager":               {older, whole, true},
		"of an older manager, another":      {older, strings.Repeat("b", 64), false},
		"what an older replica gave up":     {artifact, whole[:12], true},
		"what an older replica gave up not": {artifact, "bbbbbbbbbbbb", false},
		"nothing":                           {artifact, "", false},
		"none":                              {nil, whole, false},
	} {
		if got := tc.of.Is(tc.content); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	status := &PolicyBundleStatus{Active: artifact}
	for revision, kept := range map[string]bool{whole[:6]: true, whole[:12]: true, whole: true, twin: false} {
		if got := status.FindArtifact(revision) != nil; got != kept {
			t.Errorf("revision %s is kept: %t", revision, got)
		}
	}
}
