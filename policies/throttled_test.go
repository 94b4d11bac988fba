// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/proptest"
)

const throttledProcess = "REGATTA_THROTTLED_PROCESS"

// The chart limits the manager to a fifth of a processor, so the kernel stops it for up
// to 80 of each 100 ms. No decision of the built-in policies may be late for that.
func TestDecisionsAreMadeUnderTheChartsCPULimit(t *testing.T) {
	if os.Getenv(throttledProcess) != "" {
		decideUnderLimit(t)
		return
	}
	if proptest.Race {
		t.Skip("the race detector makes a decision several times slower, and the budgets are for what users run")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), throttledProcess+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var throttling sync.WaitGroup
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "deciding") {
			throttling.Go(func() { throttle(cmd.Process, ended) })
		}
		if strings.Contains(line, "late") || strings.Contains(line, "undecided") {
			t.Log(line)
		}
	}
	close(ended)
	throttling.Wait()
	if err := cmd.Wait(); err != nil {
		t.Errorf("decisions were late under the CPU limit: %v", err)
	}
}

// throttle stops a process for 80 of each 100 ms.
func throttle(p *os.Process, ended <-chan struct{}) {
	for {
		_ = p.Signal(syscall.SIGSTOP)
		time.Sleep(80 * time.Millisecond)
		_ = p.Signal(syscall.SIGCONT)
		select {
		case <-ended:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func decideUnderLimit(t *testing.T) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	fmt.Println("deciding")
	subject := decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}
	var undecided atomic.Int64
	note := func(rec decision.Record) {
		if rec.Outcome != decision.Decided {
			undecided.Add(1)
			fmt.Printf("undecided: %s after %s: %s\n", rec.Point, rec.Duration, rec.Error)
		}
	}
	var workers sync.WaitGroup
	for range 3 { // as many as the manager reconciles CloneSets at a time
		workers.Go(func() {
			for range 250 {
				_, rec := engine.Decide(t.Context(), e, rollout.ChangePoint(), subject, rollout.ChangeInput{Policy: "InPlaceIfPossible", Known: true})
				note(rec)
				_, rec = engine.Decide(t.Context(), e, rollout.PlanPoint(), subject, rollout.PlanInput{Update: 1, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}})
				note(rec)
			}
		})
	}
	workers.Wait()
	if n := undecided.Load(); n > 0 {
		t.Errorf("%d of 1500 decisions were late", n)
	}
}
