// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Recorded is the baseline for a comparison with the recorded answers.
const Recorded = "recorded"

// Slower is what is counted besides the kinds of differences.
const Slower compare.Kind = "slower"

// Report is the result of a replay. Everything but Latency is the same for the same records and
// policies.
type Report struct {
	// Candidate is the revision of all policies with the bundle; Baseline is that
	// of those it is compared with, or Recorded.
	Bundle    string `json:"bundle"`
	Candidate string `json:"candidate"`
	Baseline  string `json:"baseline"`
	// Decisions were made again, From the first To the last of them.
	Decisions int       `json:"decisions"`
	From      time.Time `json:"from,omitzero"`
	To        time.Time `json:"to,omitzero"`
	// Masked is how many of them had a fact hidden before they were recorded.
	Masked int `json:"masked,omitempty"`
	// Missing are bundles that took part in the recorded decisions, but not in the replay. Their answers
	// show as differences.
	Missing []string `json:"missing,omitempty"`
	// Stopped says why Skipped decisions were not made again.
	Stopped string `json:"stopped,omitempty"`
	Skipped int    `json:"skipped,omitempty"`

	Unchanged uint64 `json:"unchanged"`
	Stricter  uint64 `json:"stricter"`
	Looser    uint64 `json:"looser"`
	Changed   uint64 `json:"changed"`
	Errors    uint64 `json:"error"`

	Groups  []compare.Group `json:"groups"`
	Samples []Sample        `json:"samples"`
	// Unused are rules of the bundle that have an id and that no decision used.
	Unused []engine.Rule `json:"unused"`
	// Latency is nil if the user did not ask for it.
	Latency *Latency `json:"latency,omitempty"`
}

// Sample is a difference, with the place of the rule that makes it.
type Sample struct {
	compare.Difference
	// Place is file:row:col in the bundle, or empty.
	Place string `json:"place,omitempty"`
}

// Latency is how long decisions took, waiting included.
type Latency struct {
	Slower uint64   `json:"slower"`
	Points []Points `json:"points"`
}

// Points are the times of one point. The times in records are those of the machine that made them.
type Points struct {
	Point decision.Name `json:"point"`
	Then  Quantiles     `json:"then"`
	Now   Quantiles     `json:"now"`
	// Ratio is the median of now divided by the recorded one, 0 if that is not known.
	Ratio float64 `json:"ratio"`
}

// Quantiles are durations that half, and 99 of 100, are not above.
type Quantiles struct {
	P50 time.Duration `json:"p50Nanoseconds"`
	P99 time.Duration `json:"p99Nanoseconds"`
}

// CountKind is how many decisions are of a kind.
func (r *Report) CountKind(k compare.Kind) uint64 {
	switch k {
	case compare.Stricter:
		return r.Stricter
	case compare.Looser:
		return r.Looser
	case compare.Changed:
		return r.Changed
	case compare.Lost:
		return r.Errors
	case Slower:
		if r.Latency != nil {
			return r.Latency.Slower
		}
	}
	return 0
}

// addRecord notes a record that is made again.
func (r *Report) addRecord(old decision.Record) {
	r.Decisions++
	if r.From.IsZero() {
		r.From = old.Time
	}
	r.To = old.Time
	if slices.ContainsFunc(old.Masked, func(pointer string) bool { return strings.HasPrefix(pointer, "/input") }) {
		r.Masked++
	}
}

// addMissingBundles notes bundles of a record that are not among those of the candidate: those
// of another name, and another revision of the built-in ones.
func (r *Report) addMissingBundles(old decision.Record, candidate Side) {
	for _, id := range old.Bundles {
		name, _, _ := strings.Cut(id, "@")
		same := func(b *bundle.Bundle) bool { other, _, _ := strings.Cut(b.ID(), "@"); return other == name }
		builtin := candidate.Builtin.ID()
		if id == builtin || id == bundle.ShortID(builtin) || // as in older records, from before revisions were whole hashes
			slices.ContainsFunc(candidate.Set, same) || slices.Contains(r.Missing, id) {
			continue
		}
		r.Missing = append(r.Missing, id)
	}
	slices.Sort(r.Missing)
}

func (r *Report) finishReport(t compare.Tally, s *engine.Snapshot, b *bundle.Bundle, hit map[string]bool, times latencies) {
	r.Unchanged, r.Stricter, r.Looser, r.Changed, r.Errors = t.Same, t.Stricter, t.Looser, t.Changed, t.Errors
	r.Groups = append([]compare.Group{}, t.Groups...)
	r.Samples, r.Unused = []Sample{}, []engine.Rule{}
	for _, d := range t.Samples {
		r.Samples = append(r.Samples, Sample{d, placeOf(d, s, b)})
	}
	for _, rule := range engine.LabelledRules(b) {
		if !hit[rule.ID] {
			r.Unused = append(r.Unused, rule)
		}
	}
	r.Latency = times.summarizeLatency(t.Slower)
}

// placeOf finds the first rule of the bundle that gives a reason now and gave
// none then.
func placeOf(d compare.Difference, s *engine.Snapshot, b *bundle.Bundle) string {
	for _, h := range d.Now.Verdict.Reasons {
		was := func(o decision.Hold) bool { return o.Rule == h.Rule && o.Reason == h.Reason }
		if rule, ok := s.FindRule(d.Subject, h.Rule); ok && rule.Bundle == b.ID() && !slices.ContainsFunc(d.Then.Verdict.Reasons, was) {
			return rule.Place
		}
	}
	return ""
}

// latencies are durations by point.
type latencies map[decision.Name]*[2][]time.Duration

func (l latencies) addDurations(then, now decision.Record) {
	at := l[then.Point]
	if at == nil {
		at = &[2][]time.Duration{}
		l[then.Point] = at
	}
	if then.Duration > 0 { // otherwise it was not recorded
		at[0] = append(at[0], then.Duration)
	}
	at[1] = append(at[1], now.Duration)
}

func (l latencies) summarizeLatency(slower uint64) *Latency {
	out := &Latency{Slower: slower, Points: []Points{}}
	for _, point := range slices.Sorted(maps.Keys(l)) {
		p := Points{Point: point, Then: computeQuantiles(l[point][0]), Now: computeQuantiles(l[point][1])}
		if p.Then.P50 > 0 {
			p.Ratio = float64(p.Now.P50) / float64(p.Then.P50)
		}
		out.Points = append(out.Points, p)
	}
	return out
}

func computeQuantiles(all []time.Duration) Quantiles {
	if len(all) == 0 {
		return Quantiles{}
	}
	slices.Sort(all)
	at := func(percent int) time.Duration { return all[(len(all)*percent+99)/100-1] }
	return Quantiles{P50: at(50), P99: at(99)}
}
