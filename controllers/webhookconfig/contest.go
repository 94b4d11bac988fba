// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reasons of events about what other clients make of the configurations.
const (
	ChangedReason  = "WebhookChanged"
	NarrowedReason = "WebhookNarrowed"
)

// pace is how long to wait after something was put back that another client changes again: twice as long each time.
type pace struct{ first, longest time.Duration }

// Rules, failure policies and the like are put back within minutes, however often they are changed. Namespaces that a platform
// leaves out are let be after a few attempts, but for one a day: to write over each other for ever protects nothing.
var (
	changePace    = pace{time.Second, 5 * time.Minute}
	exemptionPace = pace{time.Minute, 24 * time.Hour}
)

// calm is how long a configuration must stay as it was written, beyond the last wait, for its contest to be over.
const calm = time.Hour

// insistence is how often something was put back in a row, and when it was last.
type insistence struct {
	times int
	last  time.Time
}

// waitBetween is how long to wait after it was put back last.
func (i insistence) waitBetween(p pace) time.Duration {
	if i.times == 0 {
		return 0
	}
	wait := p.first
	for n := 1; n < i.times && wait < p.longest; n++ {
		wait *= 2
	}
	return min(wait, p.longest)
}

// timeLeft is how long to wait from now on.
func (i insistence) timeLeft(now time.Time, p pace) time.Duration {
	return max(0, i.last.Add(i.waitBetween(p)).Sub(now))
}

// countPutBack is called when something was put back.
func (i *insistence) countPutBack(now time.Time) { i.times, i.last = i.times+1, now }

// forgetCalm is called while there is nothing to put back.
func (i *insistence) forgetCalm(now time.Time, p pace) {
	if now.Sub(i.last) > i.waitBetween(p)+calm {
		i.times = 0
	}
}

// contest is about a configuration that other clients change, as this process knows it.
type contest struct {
	// wanted is a hash of what was last wanted.
	wanted              [sha256.Size]byte
	changes, exemptions insistence
}

// verdict is what is done about a configuration.
type verdict struct {
	write bool
	// keep is whether namespaces that others leave out stay so.
	keep bool
	// changed and exempted are whether another client has changed something, and leaves out namespaces.
	changed, exempted bool
}

// judgeChange decides what is done about a configuration. differs is whether it is not as wanted besides exempted. What was not wanted before
// is written at once: a budget or a rule does not wait for another client.
func (c *contest) judgeChange(now time.Time, wanted [sha256.Size]byte, differs, exempted bool) verdict {
	v := verdict{exempted: exempted, changed: differs && wanted == c.wanted}
	v.keep = exempted && c.exemptions.timeLeft(now, exemptionPace) > 0
	v.write = differs && (!v.changed || c.changes.timeLeft(now, changePace) == 0) || exempted && !v.keep
	if !differs {
		c.changes.forgetCalm(now, changePace)
	}
	if !exempted {
		c.exemptions.forgetCalm(now, exemptionPace)
	}
	return v
}

// recordVerdict is called when what was judged is done.
func (c *contest) recordVerdict(now time.Time, wanted [sha256.Size]byte, v verdict) {
	c.wanted = wanted
	if v.write && v.changed {
		c.changes.countPutBack(now)
	}
	if v.write && v.exempted && !v.keep {
		c.exemptions.countPutBack(now)
	}
}

// settleWebhooks has the webhooks of a configuration be as wanted, as far as that is put back now, and reports what other clients make of
// them. differs is whether anything is not as wanted but what they leave out.
func settleWebhooks[T hook](w *Writer, c *contest, on client.Object, read, want []T, left exemptions, beside string, differs bool, write func([]T) error) error {
	encoded, err := json.Marshal(want)
	if err != nil {
		return fmt.Errorf("encoding webhooks: %w", err)
	}
	now, hash := w.Now(), sha256.Sum256(append(encoded, beside...))
	v := c.judgeChange(now, hash, differs, len(left) > 0)
	if v.write {
		webhooks := want
		if v.keep {
			webhooks = withExemptions(want, left)
		}
		if err := write(webhooks); err != nil {
			return err
		}
	}
	c.recordVerdict(now, hash, v)
	who := writersOf(on)
	switch {
	case v.changed:
		w.report(on, ChangedReason, changesMessage(who, read, want), "")
	case c.changes.times == 0:
		w.report(on, ChangedReason, "", "")
	}
	switch {
	case v.keep:
		w.report(on, NarrowedReason, left.formatMessage(who), "")
	case c.exemptions.times == 0:
		w.report(on, NarrowedReason, "", "")
	}
	if v.changed && !v.write {
		w.overridden += len(changesOf(read, want))
		w.putBackAt(now.Add(c.changes.timeLeft(now, changePace)))
	}
	if v.keep {
		w.overridden += len(left)
		w.putBackAt(now.Add(c.exemptions.timeLeft(now, exemptionPace)))
	}
	return nil
}

// putBackAt has the configurations be looked at again by a time.
func (w *Writer) putBackAt(at time.Time) {
	if w.again.IsZero() || at.Before(w.again) {
		w.again = at
	}
}
