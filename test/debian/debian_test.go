// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"strings"
	"testing"
)

func TestOnlyPackagesOfMissingRequirementsAreInstalled(t *testing.T) {
	wanted := []Requirement{
		{"here", func() bool { return true }},
		{"gone", func() bool { return false }},
		{"also-gone", func() bool { return false }},
	}
	if got := strings.Join(missingPackages(wanted), " "); got != "gone also-gone" {
		t.Errorf("got %q", got)
	}
}
