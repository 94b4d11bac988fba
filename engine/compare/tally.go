// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Tally counts the decisions that other policies would make differently.
type Tally struct {
	// Revision is the one that decisions are made again with. Since is the beginning of the count, which
	// may include earlier revisions for the same topic.
	Revision string    `json:"revision,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// Compared is the sum of the five counts below.
	Compared uint64 `json:"compared"`
	Same     uint64 `json:"same"`
	Stricter uint64 `json:"stricter"`
	Looser   uint64 `json:"looser"`
	Changed  uint64 `json:"changed"`
	Errors   uint64 `json:"errors"`
	// Slower counts, in addition, decisions that took longer, with any answer.
	Slower uint64 `json:"slower"`
	// Skipped counts decisions that there was no time for, or that were made while policies were changing.
	Skipped uint64 `json:"skipped"`
	// Stopped says why nothing is compared any more; empty while it is.
	Stopped string `json:"stopped,omitempty"`
	// Groups are the differences by point and reason, the most frequent first. Groups beyond the limit are
	// summed up in one group without a point.
	Groups []Group `json:"groups,omitempty"`
	// Samples are some of the differences, of as many groups as possible, the most serious first.
	Samples []Difference `json:"samples,omitempty"`
}

// Group counts differences of one kind, at one point, between the same reasons.
type Group struct {
	Point decision.Name `json:"point,omitempty"`
	Kind  Kind          `json:"kind,omitempty"`
	// Then and Now are verdicts, with the rules and reasons that only one of the
	// two has.
	Then  string `json:"then"`
	Now   string `json:"now"`
	Count uint64 `json:"count"`
}

// GroupKey is the group of a difference, without a count.
func (d *Difference) GroupKey() Group {
	g := Group{Point: d.Point, Kind: d.Kind}
	g.Then, g.Now = d.summarizeSides()
	return g
}

// Other is the text of both sides of the group that sums up the rest.
const Other = "other"

// Counter makes a Tally. It is not safe for concurrent use.
type Counter struct {
	pace                        Pace
	maxGroups, perGroup, sample int

	tally  Tally
	groups map[Group]*grouped // by the common fields
	other  uint64
}

type grouped struct {
	count   uint64
	samples []Difference
	next    int
}

// CounterOption changes how a counter counts.
type CounterOption func(*Counter)

// WithPace sets when a decision counts as slower.
func WithPace(p Pace) CounterOption { return func(c *Counter) { c.pace = p } }

// WithGroups sets how many groups the counter distinguishes.
func WithGroups(n int) CounterOption { return func(c *Counter) { c.maxGroups = max(n, 1) } }

// WithSamples sets how many samples there are at most.
func WithSamples(n int) CounterOption { return func(c *Counter) { c.sample = max(n, 0) } }

// NewCounter makes a counter.
func NewCounter(opts ...CounterOption) *Counter {
	c := &Counter{pace: DefaultPace(), maxGroups: 50, perGroup: 3, sample: 20, groups: map[Group]*grouped{}}
	for _, o := range opts {
		o(c)
	}
	return c
}

// CountDecision counts a decision that was made again. The difference is nil if there is none. It
// reports whether the difference was taken as a sample: the first ones of each group are, later ones
// less and less often.
func (c *Counter) CountDecision(d *Difference, then, now time.Duration) (sampled bool) {
	c.tally.Compared++
	if c.pace.IsSlower(then, now) {
		c.tally.Slower++
	}
	if d == nil {
		c.tally.Same++
		return false
	}
	switch d.Kind {
	case Stricter:
		c.tally.Stricter++
	case Looser:
		c.tally.Looser++
	case Lost:
		c.tally.Errors++
	default:
		c.tally.Changed++
	}
	key := d.GroupKey()
	g := c.groups[key]
	if g == nil {
		if len(c.groups) >= c.maxGroups {
			c.other++
			return false
		}
		g = &grouped{}
		c.groups[key] = g
	}
	g.count++
	return g.takeSample(d, c.perGroup)
}

// takeSample keeps the first few samples, and later replaces them by those whose number is a power of
// two.
func (g *grouped) takeSample(d *Difference, limit int) bool {
	switch {
	case len(g.samples) < limit:
		g.samples = append(g.samples, d.briefCopy())
	case bits.OnesCount64(g.count) == 1:
		g.samples[g.next] = d.briefCopy()
		g.next = (g.next + 1) % limit
	default:
		return false
	}
	return true
}

// CurrentTally returns the counts so far.
func (c *Counter) CurrentTally() Tally {
	out := c.tally
	for key, g := range c.groups {
		key.Count = g.count
		out.Groups = append(out.Groups, key)
	}
	slices.SortFunc(out.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), compareSeverity(a.Kind, b.Kind), strings.Compare(string(a.Point), string(b.Point)),
			strings.Compare(a.Now, b.Now), strings.Compare(a.Then, b.Then))
	})
	out.Samples = c.pickSamples(out.Groups)
	if c.other > 0 {
		out.Groups = append(out.Groups, Group{Then: Other, Now: Other, Count: c.other})
	}
	return out
}

// pickSamples takes one sample of each group, then another one of each, and so on, with the most
// serious groups first.
func (c *Counter) pickSamples(groups []Group) []Difference {
	groups = slices.Clone(groups)
	slices.SortStableFunc(groups, func(a, b Group) int { return compareSeverity(a.Kind, b.Kind) })
	var out []Difference
	for i := range c.perGroup {
		for _, key := range groups {
			key.Count = 0
			if all := c.groups[key].samples; i < len(all) && len(out) < c.sample {
				out = append(out, all[i])
			}
		}
	}
	return out
}
