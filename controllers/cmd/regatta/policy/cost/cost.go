// SPDX-License-Identifier: Apache-2.0

// Package cost adds up what rules cost, from records of decisions: how often each rule held something, what, for how long, and how
// often it denied a request.
package cost

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Counter adds up records in any order. It keeps 100 bytes or so of decisions of a workload that are more than ten minutes apart or differ, and
// nothing of the others.
type Counter struct {
	namespace string
	histories map[place]*history
	hours     map[time.Time]*hour
	// names has each name of a rule once.
	names map[string]string
	first time.Time
	last  time.Time
}

// place is what a decision is about, and at which point.
type place struct {
	subject decision.Subject
	point   decision.Name
}

// hour counts the decisions of an hour.
type hour struct {
	decisions, undecided int
	denied               map[string]int // by rule
}

// NewCounter makes a counter for decisions about what is in a namespace, or about everything if it is empty.
func NewCounter(namespace string) *Counter {
	return &Counter{namespace: namespace, histories: map[place]*history{}, hours: map[time.Time]*hour{}, names: map[string]string{}}
}

// AddRecord counts a decision.
func (c *Counter) AddRecord(r decision.Record) {
	if c.first.IsZero() || r.Time.Before(c.first) {
		c.first = r.Time
	}
	if r.Time.After(c.last) {
		c.last = r.Time
	}
	if c.namespace != "" && r.Subject.Namespace != c.namespace {
		return
	}
	in := c.hours[r.Time.UTC().Truncate(time.Hour)]
	if in == nil {
		in = &hour{denied: map[string]int{}}
		c.hours[r.Time.UTC().Truncate(time.Hour)] = in
	}
	in.decisions++
	if r.Outcome != decision.Decided { // the answer is that of no rule, and says nothing of those that hold
		in.undecided++
		return
	}
	if holds, at, ok := holdsFor(r); ok {
		c.addHolds(r, holds, at)
		return
	}
	if verdict := decision.VerdictOf(r); isDenial(r.Point, verdict.Word) {
		for _, rule := range c.rulesOf(convertHolds(verdict.Reasons, fromDecision)) {
			in.denied[rule]++
		}
	}
}

func (c *Counter) addHolds(r decision.Record, holds []ruleHold, at time.Time) {
	where := place{r.Subject, r.Point}
	where.subject.UID = "" // an object that is made again is the same workload to its owner
	s := state{at: at, seen: at, rules: c.rulesOf(holds)}
	for _, h := range holds {
		until, err := time.Parse(time.RFC3339, h.until)
		if err != nil { // none, or none that can be read
			s.until = time.Time{}
			break
		}
		s.until = laterOf(s.until, until)
	}
	h := c.histories[where]
	if h == nil {
		h = &history{}
		c.histories[where] = h
	}
	h.addState(s)
}

// rulesOf returns the rules of holds, sorted. The order of a rollout, in which pods wait for others, is the cost of no rule.
func (c *Counter) rulesOf(holds []ruleHold) (rules []string) {
	for _, h := range holds {
		if h.rule == "" || h.rule == decision.RuleWalk {
			continue
		}
		name, ok := c.names[h.rule]
		if !ok {
			name = strings.Clone(h.rule)
			c.names[name] = name
		}
		rules = append(rules, name)
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// Report says what rules cost.
type Report struct {
	// From and To are the times of the first and the last decision, or the begin of what was asked for.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Decisions counts the decisions in that time, from the full hour on; Undecided those that no policy made in time, so that a fallback answered.
	Decisions int `json:"decisions"`
	Undecided int `json:"undecided"`
	// Rules are the rules that held or denied something, that which cost most first.
	Rules []Rule `json:"rules"`
}

// Rule is what a rule cost.
type Rule struct {
	Rule string `json:"rule"`
	// Held is how often it began to hold a workload, or some of its pods.
	Held int `json:"held"`
	// Hours are the hours in which it held something, of all workloads together.
	Hours float64 `json:"hours"`
	// Open is how many holds have no end that is known: neither a later decision nor the hold tells it.
	Open int `json:"open"`
	// Workloads are those that it held, by their hours. WorkloadCount counts them, should there be more.
	Workloads     []Workload `json:"workloads,omitempty"`
	WorkloadCount int        `json:"workloadCount"`
	// Denied is how many requests it denied, such as deletions and evictions.
	Denied int `json:"denied"`
}

// Workload is what a rule cost one workload.
type Workload struct {
	decision.Subject
	Hours float64 `json:"hours"`
	Held  int     `json:"held"`
}

// mostWorkloads bounds the workloads that a report names for a rule.
const mostWorkloads = 100

// Window says what a report is about.
type Window struct {
	// Since is how long before the last decision the report begins; with the first decision if it is zero.
	Since time.Duration
	// Quiet is how long a hold that names no end counts after the last decision about it.
	Quiet time.Duration
}

// BuildReport adds up the decisions in a window.
func (c *Counter) BuildReport(w Window) Report {
	from := c.first
	if begin := c.last.Add(-w.Since); w.Since > 0 && begin.After(from) {
		from = begin
	}
	out := Report{From: from, To: c.last, Rules: []Rule{}}
	sums := map[string]*sum{}
	for at, h := range c.histories {
		for rule, spans := range h.listSpans(from, c.last, w.Quiet) {
			s := sumFor(sums, rule)
			s.held[at.subject] = append(s.held[at.subject], spans...)
		}
	}
	for at, in := range c.hours {
		if at.Before(from.UTC().Truncate(time.Hour)) {
			continue
		}
		out.Decisions += in.decisions
		out.Undecided += in.undecided
		for rule, n := range in.denied {
			sumFor(sums, rule).denied += n
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(sums)) {
		out.Rules = append(out.Rules, sums[rule].toRule(rule))
	}
	slices.SortStableFunc(out.Rules, func(a, b Rule) int { return cmp.Or(cmp.Compare(b.Hours, a.Hours), cmp.Compare(b.Denied, a.Denied)) })
	return out
}

// sum has when a rule held each workload.
type sum struct {
	held   map[decision.Subject][]span
	denied int
}

func sumFor(sums map[string]*sum, rule string) *sum {
	s := sums[rule]
	if s == nil {
		s = &sum{held: map[decision.Subject][]span{}}
		sums[rule] = s
	}
	return s
}

func (s *sum) toRule(name string) Rule {
	r := Rule{Rule: name, Denied: s.denied, WorkloadCount: len(s.held)}
	var all time.Duration
	for subject, spans := range s.held {
		merged := mergeSpans(spans)
		var own time.Duration
		for _, held := range merged {
			own += held.to.Sub(held.from)
			if held.open {
				r.Open++
			}
		}
		all += own
		r.Held += len(merged)
		r.Workloads = append(r.Workloads, Workload{Subject: subject, Hours: own.Hours(), Held: len(merged)})
	}
	r.Hours = all.Hours()
	slices.SortFunc(r.Workloads, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(b.Hours, a.Hours), strings.Compare(formatSubject(a.Subject), formatSubject(b.Subject)))
	})
	r.Workloads = r.Workloads[:min(len(r.Workloads), mostWorkloads)]
	return r
}
