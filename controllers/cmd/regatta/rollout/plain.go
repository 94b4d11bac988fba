// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
)

// printPlain prints a line for each change, at most once per interval.
func printPlain(ctx context.Context, r *rollout, out io.Writer, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	l := lines{since: r.now(), told: map[string]bool{}}
	for {
		s, last, err := r.nextSnapshot()
		if s.state != nil {
			for _, line := range l.nextLines(s, last) {
				if _, werr := fmt.Fprintf(out, "%s  %s\n", r.now().Format("15:04:05"), line); werr != nil {
					return fmt.Errorf("printing the rollout: %w", werr)
				}
			}
		}
		if last {
			return err
		}
		select {
		case <-ctx.Done():
			return errInterrupted
		case <-ticker.C:
		}
	}
}

// lines remembers what was printed.
type lines struct {
	since  time.Time // earlier events are not printed
	before string
	told   map[string]bool
}

// nextLines returns the lines that a snapshot adds: the progress, if that changed, and each reason and
// warning once.
func (l *lines) nextLines(s snapshot, last bool) []string {
	var out []string
	once := func(line string) {
		if !l.told[line] {
			l.told[line] = true
			out = append(out, line)
		}
	}
	p := s.state
	now := fmt.Sprintf("%s; %d of %d pods, %d available", p.ProgressText(), p.Pods, p.Wanted, p.Available)
	if !p.Observed {
		now = "the manager has not seen the change yet"
	}
	if s.answer != nil && p.Observed && !p.IsComplete() {
		now += countReasons(s.answer.Why)
	}
	if now != l.before {
		l.before = now
		out = append(out, now)
	}
	for _, line := range reasonsOf(s.answer) {
		once(line)
	}
	for _, e := range s.events {
		held := e.reason == s.kind.HeldReason && s.answer != nil // printed above
		if e.warning && !held && !e.at.Before(l.since) {
			once(fmt.Sprintf("event %s: %s", e.reason, e.message))
		}
	}
	for _, err := range []error{s.silence, s.blind} {
		if err != nil {
			once("warning: " + joinLines(err.Error()))
		}
	}
	if last && p.IsComplete() {
		out = append(out, "the rollout is complete")
	}
	return out
}

// reasonsOf describes the rules that hold pods, and the nodes whose pods move.
func reasonsOf(a *explain.Answer) (out []string) {
	if a == nil {
		return nil
	}
	for _, y := range a.Why {
		if y.Rule != "" && y.Rule != decision.RuleWalk {
			out = append(out, fmt.Sprintf("%s: %s (rule %s)", y.Reason, y.Message, y.Rule))
		}
	}
	for _, n := range a.Nodes {
		if n.Verdict == explain.Moved || n.Verdict == explain.Updating {
			out = append(out, fmt.Sprintf("node %s: pod %s is on its way", n.Name, n.Pod))
		}
	}
	return out
}

// countReasons counts pods by reason, and adds up the groups that a rule distinguishes.
func countReasons(why []explain.ReasonCount) string {
	counts := map[string]int{}
	var order []string
	for _, y := range why {
		key := fmt.Sprintf("%s (%s)", y.Verdict.DisplayText(), y.Reason)
		if counts[key] == 0 {
			order = append(order, key)
		}
		counts[key] += y.Pods
	}
	out := ""
	for i, key := range order {
		separator := ", "
		if i == 0 {
			separator = "; "
		}
		out += fmt.Sprintf("%s%d %s", separator, counts[key], key)
	}
	return out
}
