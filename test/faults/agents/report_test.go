// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/test/faults/trap"
)

func TestPointsAreOfEachCall(t *testing.T) {
	var got []string
	for _, p := range pointsOf([]string{"Version", "ListContainers", "PATCH pods", "ListContainers", "StopContainer", "ListContainers", "PATCH pods", "PATCH pods"}, []string{"StopContainer"}) {
		got = append(got, p.String())
	}
	want := []string{
		"before Version, call 1", "after Version, call 1",
		"before ListContainers, call 1", "after ListContainers, call 1",
		"before PATCH pods, call 1", "after PATCH pods, call 1",
		"before ListContainers, call 2", "after ListContainers, call 2",
		"before StopContainer, call 1", "in StopContainer, call 1", "after StopContainer, call 1",
		"before PATCH pods, call 2", "after PATCH pods, call 2",
		"before PATCH pods, call 3", "after PATCH pods, call 3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := (trap.Point{}).String(); got != "nothing" {
		t.Errorf("got %q", got)
	}
}

func TestTheReport(t *testing.T) {
	r := &Report{Kills: 2, Took: time.Minute}
	r.note("agent killed", "a restart", time.Second, "Completed", "")
	r.note("agent killed", "a restart", 3*time.Second, "Completed, twice", "")
	r.note("agent killed", "a restart", 2*time.Second, "Completed", "")
	if err := r.Err(); err != nil {
		t.Errorf("got %v", err)
	}
	want := "| Broken | In | Tried | Slowest | What happened |\n|---|---|---|---|---|\n| agent killed | a restart | 3 | 3.0 s | Completed; or Completed, twice |\n\n" +
		"3 faults tried in 1m0s, agents killed 2 times, violations: 0\n"
	if got := r.Markdown(); got != want {
		t.Errorf("got\n%s", got)
	}
	r.Points = 8
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "killed 2 times at 8 points") {
		t.Errorf("got %v", err)
	}
	r.blame("agent killed", "a restart", "restarted twice")
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "agent killed, in a restart: restarted twice") {
		t.Errorf("got %v", err)
	}
	if got := r.String(); !strings.Contains(got, "WRONG: restarted twice") || !strings.Contains(got, "violations: 1") {
		t.Errorf("got\n%s", got)
	}
}
