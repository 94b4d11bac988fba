// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reasons of events about changes of the configurations by other clients.
const (
	ChangedReason  = "WebhookChanged"
	NarrowedReason = "WebhookNarrowed"
)

// backoff is how long to wait before a change is reverted that another client has made again: twice as long each time.
type backoff struct{ first, longest time.Duration }

// Changes of rules, failure policies and similar fields are reverted within minutes, however often they are made. If a
// platform keeps leaving out namespaces, that is reverted only once a day after a few attempts: two clients that overwrite
// each other without end protect nothing.
var (
	changePace    = backoff{time.Second, 5 * time.Minute}
	exemptionPace = backoff{time.Minute, 24 * time.Hour}
)

// calm is how long after the last wait a configuration must stay unchanged before its history is forgotten.
const calm = time.Hour

// repairHistory is how often a change was reverted in a row, and when last.
type repairHistory struct {
	times int
	last  time.Time
}

// waitBetween is how long to wait after the last revert.
func (i repairHistory) waitBetween(p backoff) time.Duration {
	if i.times == 0 {
		return 0
	}
	wait := p.first
	for n := 1; n < i.times && wait < p.longest; n++ {
		wait *= 2
	}
	return min(wait, p.longest)
}

// timeLeft is how long to wait from now.
func (i repairHistory) timeLeft(now time.Time, p backoff) time.Duration {
	return max(0, i.last.Add(i.waitBetween(p)).Sub(now))
}

// countPutBack counts a revert.
func (i *repairHistory) countPutBack(now time.Time) { i.times, i.last = i.times+1, now }

// forgetCalm is called while there is nothing to revert, and forgets the history after some time.
func (i *repairHistory) forgetCalm(now time.Time, p backoff) {
	if now.Sub(i.last) > i.waitBetween(p)+calm {
		i.times = 0
	}
}

// mostExemptions is how many requirements have separate waits. Others are reverted like other changes.
const mostExemptions = 16

// configurationContest has what this process remembers of a configuration that other clients change.
type configurationContest struct {
	// wanted is a hash of the last wanted configuration.
	wanted  [sha256.Size]byte
	changes repairHistory
	// exemptions has a separate history for each requirement that was reverted, so that the wait of one does not apply to another.
	exemptions map[requirementID]repairHistory
}

// contestDecision is the decision what to write to a configuration.
type contestDecision struct {
	write bool
	// changed is whether another client has changed something.
	changed bool
	// kept are the exemptions by other clients that stay for now, and until is when the first of them is reverted.
	kept  exemptions
	until time.Time
	// ended are the requirements that are reverted, and begun is whether one of them is new.
	ended map[requirementID]bool
	begun bool
}

// judgeChange decides what to write to a configuration. differs is whether it differs from the wanted one in more than exemptions. A
// new wanted configuration is written at once: a budget or a rule does not wait because of another client.
func (c *configurationContest) judgeChange(now time.Time, wanted [sha256.Size]byte, differs bool, left exemptions) contestDecision {
	if !differs {
		c.changes.forgetCalm(now, changePace)
	}
	c.forgetCalmExemptions(now, left)
	v := contestDecision{changed: differs && wanted == c.wanted, ended: map[requirementID]bool{}}
	v.kept = left.filterRequirements(func(id requirementID) bool {
		wait := c.changes.timeLeft(now, changePace)
		known, was := c.exemptions[id]
		if was {
			wait = known.timeLeft(now, exemptionPace)
		}
		if wait == 0 {
			v.ended[id], v.begun = true, v.begun || !was
			return false
		}
		if at := now.Add(wait); v.until.IsZero() || at.Before(v.until) {
			v.until = at
		}
		return true
	})
	v.write = differs && (!v.changed || c.changes.timeLeft(now, changePace) == 0) || len(v.ended) > 0
	return v
}

// forgetCalmExemptions forgets requirements that no client has added again.
func (c *configurationContest) forgetCalmExemptions(now time.Time, left exemptions) {
	present := left.listIDs()
	for id, i := range c.exemptions {
		if i.forgetCalm(now, exemptionPace); i.times == 0 && !present[id] {
			delete(c.exemptions, id)
		}
	}
}

// recordVerdict records a decision that was carried out.
func (c *configurationContest) recordVerdict(now time.Time, wanted [sha256.Size]byte, v contestDecision) {
	c.wanted = wanted
	if v.write && (v.changed || v.begun) {
		c.changes.countPutBack(now)
	}
	for id := range v.ended {
		i, was := c.exemptions[id]
		if !was && len(c.exemptions) == mostExemptions {
			continue
		}
		if c.exemptions == nil {
			c.exemptions = map[requirementID]repairHistory{}
		}
		i.countPutBack(now)
		c.exemptions[id] = i
	}
}

// settleWebhooks writes the webhooks of a configuration if they differ and are not waiting for a backoff, and reports changes by other
// clients. differs is whether anything differs other than exemptions.
func settleWebhooks[T webhookEntry](w *Writer, c *configurationContest, on client.Object, read, want []T, left exemptions, beside string, differs bool, write func([]T) error) error {
	encoded, err := json.Marshal(want)
	if err != nil {
		return fmt.Errorf("encoding webhooks: %w", err)
	}
	now, hash := w.Now(), sha256.Sum256(append(encoded, beside...))
	v := c.judgeChange(now, hash, differs, left)
	if v.write {
		if err := write(withExemptions(want, v.kept)); err != nil {
			return err
		}
	}
	c.recordVerdict(now, hash, v)
	who := writersOf(on, "webhooks")
	switch {
	case v.changed:
		w.reportOnce(on, ChangedReason, changesMessage(who, read, want), "")
	case c.changes.times == 0:
		w.reportOnce(on, ChangedReason, "", "")
	}
	switch {
	case len(v.kept) > 0:
		w.reportOnce(on, NarrowedReason, v.kept.formatMessage(who), "")
	case len(c.exemptions) == 0:
		w.reportOnce(on, NarrowedReason, "", "")
	}
	if v.changed && !v.write {
		w.overridden += len(changesOf(read, want))
		w.putBackAt(now.Add(c.changes.timeLeft(now, changePace)))
	}
	if len(v.kept) > 0 {
		w.overridden += len(v.kept)
		w.putBackAt(v.until)
	}
	return nil
}

// putBackAt makes the configurations be compared again by a time.
func (w *Writer) putBackAt(at time.Time) {
	if w.again.IsZero() || at.Before(w.again) {
		w.again = at
	}
}
