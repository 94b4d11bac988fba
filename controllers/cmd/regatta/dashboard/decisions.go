// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/engine/decision"
)

const (
	// decisionInterval is the time between two questions to the managers for new decisions, while a page shows them.
	decisionInterval = 2 * time.Second
	// firstDecisions is the age of the oldest decision that the page shows.
	firstDecisions = 10 * time.Minute
	// overlap is how much of the time before the last question is asked for again: a manager may write a decision down a moment
	// after it made it.
	overlap = 10 * time.Second
	// maxDecisions is how many decisions the page shows, the latest ones, and how many each manager sends at once.
	maxDecisions = 1_000
	// maxReasons is how many reasons a decision is shown with.
	maxReasons = 5
)

// decisionRow is a decision that a manager has made.
type decisionRow struct {
	Type      string           `json:"type"`
	At        int64            `json:"at"` // in milliseconds since 1970
	Point     decision.Name    `json:"point"`
	Group     string           `json:"group,omitempty"`
	Kind      string           `json:"kind"`
	Namespace string           `json:"namespace,omitempty"`
	Name      string           `json:"name"`
	Outcome   decision.Outcome `json:"outcome"`
	Rules     []string         `json:"rules,omitempty"`
	Reasons   []decisionReason `json:"reasons,omitempty"`
	Error     string           `json:"error,omitempty"`
	// Shadow names the bundle in shadow whose decision it is, which was not acted on.
	Shadow string `json:"shadow,omitempty"`
	// Micros is how long the decision took, in microseconds.
	Micros int64 `json:"micros"`
}

// decisionReason is a hold or a denial of a decision.
type decisionReason struct {
	Rule    string `json:"rule,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Until   string `json:"until,omitempty"`
}

// decisionLog keeps the latest decisions. It asks the managers while a page shows them.
type decisionLog struct {
	asker     asker
	namespace string
	now       func() time.Time
	feed      *changeFeed

	mu    sync.Mutex
	users int
	stop  context.CancelFunc
	rows  []row // the latest first
	// complete is when the last question was asked that all managers have answered in full.
	complete time.Time
	asked    bool
	problems []error
}

func (c *collector) openDecisions(ctx context.Context) page {
	c.mu.Lock()
	if c.decisions == nil {
		c.decisions = &decisionLog{asker: c.asker, namespace: c.namespace, now: c.now, feed: &changeFeed{}}
	}
	log := c.decisions
	c.mu.Unlock()
	return log.openPage(ctx)
}

// decisionPage is a page of decisions.
type decisionPage struct {
	log     *decisionLog
	changed <-chan struct{}
	release func()
}

func (p *decisionPage) collectRows() []row            { return p.log.collectRows() }
func (p *decisionPage) isStale() bool                 { return false }
func (p *decisionPage) changeSignal() <-chan struct{} { return p.changed }
func (p *decisionPage) closePage()                    { p.release() }

func (l *decisionLog) openPage(ctx context.Context) page {
	p := &decisionPage{log: l}
	changed, unsubscribe := l.feed.addListener()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users++; l.users == 1 {
		var asking context.Context
		asking, l.stop = context.WithCancel(ctx)
		go l.askManagers(asking)
	}
	p.changed, p.release = changed, sync.OnceFunc(func() {
		unsubscribe()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.users--; l.users == 0 {
			l.stop()
		}
	})
	return p
}

func (l *decisionLog) askManagers(ctx context.Context) {
	for {
		l.askOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(decisionInterval):
		}
	}
}

// askOnce asks for the decisions since the last question that all managers have answered in full. What a manager did not
// answer is asked for again.
func (l *decisionLog) askOnce(ctx context.Context) {
	now := l.now()
	l.mu.Lock()
	since := firstDecisions
	if !l.complete.IsZero() {
		since = min(max(now.Sub(l.complete), 0)+overlap, firstDecisions)
	}
	l.mu.Unlock()
	records, warnings, err := l.asker.FetchDecisions(ctx, managers.Decisions{Since: since, Namespace: l.namespace, Limit: maxDecisions})
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked, l.problems = true, warnings
	if err != nil {
		l.problems = append(l.problems, err)
	}
	if len(l.problems) == 0 {
		l.complete = now
	}
	l.addRecords(records, now)
	l.feed.notifyListeners()
}

// addRecords adds records that are not there yet, and drops those that are too old.
func (l *decisionLog) addRecords(records []decision.Record, now time.Time) {
	known := make(map[string]bool, len(l.rows))
	for _, r := range l.rows {
		known[r.ID] = true
	}
	for i := range records {
		r := &records[i]
		if id := fmt.Sprintf("decision/%s/%d/%d", r.Origin, r.Time.UnixNano(), r.ID); !known[id] {
			l.rows = append(l.rows, row{id, newDecisionRow(r)})
		}
	}
	timeOf := func(r row) int64 { return r.Data.(decisionRow).At }
	slices.SortStableFunc(l.rows, func(a, b row) int { return cmp.Compare(timeOf(b), timeOf(a)) })
	l.rows = l.rows[:min(len(l.rows), maxDecisions)]
	oldest := now.Add(-firstDecisions - overlap).UnixMilli()
	l.rows = slices.DeleteFunc(l.rows, func(r row) bool { return timeOf(r) < oldest })
}

func (l *decisionLog) collectRows() []row {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := append([]row{{"sync", syncRow{"sync", l.asked}}}, l.rows...)
	for i, err := range l.problems {
		out = append(out, newProblemRow(fmt.Sprint("decisions/", i), err))
	}
	return out
}

func newDecisionRow(r *decision.Record) decisionRow {
	return decisionRow{
		Type: "decision", At: r.Time.UnixMilli(), Point: r.Point, Group: r.Subject.Group, Kind: r.Subject.Kind, Namespace: r.Subject.Namespace,
		Name: r.Subject.Name, Outcome: r.Outcome, Rules: r.Rules, Reasons: reasonsOf(r.Output), Error: r.Error, Shadow: r.Shadow,
		Micros: r.Duration.Microseconds(),
	}
}

// reasonsOf returns the holds, denials and other results of rules in the output of any decision point: the elements of its
// lists that have a reason and a message.
func reasonsOf(output any) (out []decisionReason) {
	raw, err := json.Marshal(output)
	if err != nil {
		return nil
	}
	var lists map[string]json.RawMessage
	if json.Unmarshal(raw, &lists) != nil {
		return nil // an output of another shape has no reasons
	}
	var names []string
	for name := range lists {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var found []decisionReason
		if !strings.HasPrefix(string(lists[name]), "[{") || json.Unmarshal(lists[name], &found) != nil {
			continue
		}
		for _, one := range found {
			if one.Reason != "" && one.Message != "" && len(out) < maxReasons {
				out = append(out, one)
			}
		}
	}
	return out
}
