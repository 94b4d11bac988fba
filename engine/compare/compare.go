// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
)

// Kind says how a decision differs.
type Kind string

// The kinds. Package decision defines for each point which answers are looser or stricter.
const (
	Stricter = Kind(decision.Stricter)
	Looser   = Kind(decision.Looser)
	Changed  = Kind(decision.Changed)
	// Lost means that there was a decision, and now there is none.
	Lost Kind = "error"
)

// AllKinds are all kinds, the most serious first.
func AllKinds() []Kind { return []Kind{Lost, Looser, Stricter, Changed} }

// DiffRecords compares two decisions about one input. It returns nil if nothing differs that a
// controller acts on: the bundles, the rules and the duration do not count. It also returns nil if a
// fact of the input was missing: whether the policies decide then shows which rules take part, and not
// what they say. Its error is an UnknownPointError, or says that the answers are not of the point.
func DiffRecords(e *engine.Engine, then, now decision.Record) (*Difference, error) {
	p, ok := catalog.FindPoint(then.Point)
	if !ok {
		return nil, fmt.Errorf("comparing with record %d: %w", then.ID, UnknownPointError{then.Point})
	}
	if _, missing := decision.FindMissingFact(then.Input); missing {
		return nil, nil
	}
	return diffAnswers(e, p, then, now)
}

// DiffAnswers is DiffRecords for two decisions with the same policies: a missing fact counts like any other.
func DiffAnswers(e *engine.Engine, then, now decision.Record) (*Difference, error) {
	p, ok := catalog.FindPoint(then.Point)
	if !ok {
		return nil, fmt.Errorf("comparing with record %d: %w", then.ID, UnknownPointError{then.Point})
	}
	return diffAnswers(e, p, then, now)
}

func diffAnswers(e *engine.Engine, p decision.UntypedPoint, then, now decision.Record) (*Difference, error) {
	fields, err := differingFields(e, then.Output, now.Output)
	if err != nil {
		return nil, fmt.Errorf("comparing with record %d: %w", then.ID, err)
	}
	if len(fields) == 0 && then.Outcome == now.Outcome {
		return nil, nil
	}
	d := &Difference{
		Kind: Changed, Point: then.Point, Subject: then.Subject, Record: then.ID,
		Then: sideOf(then), Now: sideOf(now), Fields: fields,
	}
	switch {
	case then.Outcome == decision.Decided && now.Outcome != decision.Decided:
		d.Kind = Lost
	case len(fields) > 0: // a fallback is an answer too: controllers act on it
		d.Kind = Kind(p.Lean(then.Input, then.Output, now.Output))
	}
	return d, nil
}

// Pace says when a decision is slower than another one. Both bounds must be exceeded, since a decision
// that takes 150 us and not 50 us does not matter.
type Pace struct {
	// Factor is how many times longer the slower decision takes.
	Factor float64
	// Floor is how much longer it takes at least.
	Floor time.Duration
}

// DefaultPace is twice as long, and at least 5 ms longer.
func DefaultPace() Pace { return Pace{Factor: 2, Floor: 5 * time.Millisecond} }

// IsSlower compares two durations. It returns false if one of them is not known.
func (p Pace) IsSlower(then, now time.Duration) bool {
	return then > 0 && float64(now) > p.Factor*float64(then) && now-then > p.Floor
}

// Bounds of the description of a side: there may be thousands of rules, and their
// authors choose the words.
const (
	maxNamed  = 3
	maxWord   = 120
	maxBriefs = 8
)

// summarizeSides returns the two sides in short: the verdict, and the rules and reasons that only this
// side has. Messages are left out, since they contain numbers.
func (d *Difference) summarizeSides() (then, now string) {
	a, b := reasonNames(d.Then), reasonNames(d.Now)
	then, now = d.Then.describeVerdict(subtractSorted(a, b)), d.Now.describeVerdict(subtractSorted(b, a))
	if then == now && len(d.Fields) > 0 {
		now += " with other " + strings.Join(d.Fields, ", ")
	}
	return then, now
}

func reasonNames(s Side) []string {
	var out []string
	for _, r := range s.Verdict.Reasons {
		out = append(out, shortenText(strings.TrimSpace(r.Rule+" "+r.Reason)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// subtractSorted returns the elements of a sorted list that another one does not have.
func subtractSorted(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		_, found := slices.BinarySearch(others, s)
		return found
	})
}

func (s Side) describeVerdict(reasons []string) string {
	if s.Outcome != decision.Decided {
		return string(s.Outcome)
	}
	if more := len(reasons) - maxNamed; more > 0 {
		reasons = append(slices.Clone(reasons[:maxNamed]), fmt.Sprintf("%d more", more))
	}
	if len(reasons) == 0 {
		return s.Verdict.Word
	}
	return s.Verdict.Word + " (" + strings.Join(reasons, ", ") + ")"
}

func shortenText(s string) string {
	if len(s) <= maxWord {
		return s
	}
	cut := maxWord
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// briefCopy returns the difference without whole answers and with only a few reasons, so
// that a caller can keep it for long.
func (d *Difference) briefCopy() Difference {
	out := *d
	out.Then, out.Now = d.Then.briefCopy(), d.Now.briefCopy()
	return out
}

func (s Side) briefCopy() Side {
	s.Output = nil
	s.Error = shortenText(s.Error)
	s.Verdict.Reasons = slices.Clone(s.Verdict.Reasons[:min(len(s.Verdict.Reasons), maxBriefs)])
	for i := range s.Verdict.Reasons {
		h := &s.Verdict.Reasons[i]
		h.Rule, h.Reason, h.Message = shortenText(h.Rule), shortenText(h.Reason), shortenText(h.Message)
	}
	s.Rules = slices.Clone(s.Rules[:min(len(s.Rules), maxBriefs)])
	return s
}

// compareSeverity orders kinds like AllKinds.
func compareSeverity(a, b Kind) int {
	return cmp.Compare(slices.Index(AllKinds(), a), slices.Index(AllKinds(), b))
}
