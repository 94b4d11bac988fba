// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"strings"
	"testing"
)

// A pod that has ended and that its hook holds keeps its own ordinal waiting, and no other one.
func TestAPodThatHasEndedAndIsHeldKeepsNoOther(t *testing.T) {
	s := newLife(t, testEngine(t), testSet(3, hooked))
	s.RunUntilStable()
	s.FailPod(s.FindPod("db-0"))
	s.pass("")
	s.Delete(s.FindPod("db-2"))
	s.pass("")
	if got := s.pods(); !strings.Contains(got, "db-2=") {
		t.Errorf("there are %q, want db-2 again%s", got, s.DescribeState())
	}
}
