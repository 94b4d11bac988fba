// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const limitedVariable = "REGATTA_TEST_LIMITED"

// Where the container has too little memory, the kernel ends the process that checks a bundle, and not the manager.
func TestTheProcessThatChecksIsEndedFirst(t *testing.T) {
	if os.Getenv(limitedVariable) != "" { // the process that the test starts
		if err := limitSelf("1073741824"); err != nil {
			t.Fatal(err)
		}
		score, err := os.ReadFile("/proc/self/oom_score_adj")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("score=%s", strings.TrimSpace(string(score)))
		return
	}
	before, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheProcessThatChecksIsEndedFirst$", "-test.v")
	cmd.Env = append(os.Environ(), limitedVariable+"=yes")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "score=1000\n") {
		t.Errorf("got %v, %s; want the score of a process that is ended before all others", err, out)
	}
	if own, err := os.ReadFile("/proc/self/oom_score_adj"); err != nil || string(own) != string(before) {
		t.Errorf("the score of the process that starts it is %s, %v; it was %s", own, err, before)
	}
}
