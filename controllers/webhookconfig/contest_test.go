// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"crypto/sha256"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestAContestIsBoundedAndLost holds that whatever other clients do and when: what is wanted anew is written at once, what they change
// is put back within the longest wait, and the writes that they cause grow with the time and not with theirs.
func TestAContestIsBoundedAndLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c contest
		now := time.Unix(1_000_000, 0)
		begin, wanted, own, caused := now, 0, 0, 0
		differs, exempted := true, false // as at the first look
		var since time.Time              // when something was changed that is not put back yet
		for range rapid.IntRange(1, 300).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 120).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				wanted, differs = wanted+1, true
				own++
			case 1, 2, 3, 4:
				differs = true
			case 5, 6, 7, 8:
				exempted = true
			}
			if differs && since.IsZero() {
				since = now
			}
			hash := sha256.Sum256([]byte{byte(wanted), byte(wanted >> 8)})
			fresh := hash != c.wanted
			v := c.judgeChange(now, hash, differs, exempted)
			if fresh && differs && !v.write {
				t.Fatal("what is wanted anew waits")
			}
			if exempted && !v.keep && !v.write {
				t.Fatal("what is not kept is not put back")
			}
			c.recordVerdict(now, hash, v)
			if v.write {
				if !fresh {
					caused++
				}
				differs, exempted, since = false, v.keep, time.Time{}
			}
			if !since.IsZero() && now.Sub(since) > changePace.longest {
				t.Fatalf("it is changed for %s", now.Sub(since))
			}
		}
		// 9 and 11 doublings, then one for each of the longest waits; and one more for each time of calm.
		passed := now.Sub(begin)
		if most := 22 + int(passed/changePace.longest) + int(passed/calm); caused > most {
			t.Fatalf("%d writes in %s, want at most %d beside %d of our own", caused, passed, most, own)
		}
	})
}

// TestAContestIsOverWhenItIsCalm holds that one who changes something a day later is put back at once.
func TestAContestIsOverWhenItIsCalm(t *testing.T) {
	var c contest
	now := time.Unix(1_000_000, 0)
	look := func(differs bool) verdict {
		v := c.judgeChange(now, sha256.Sum256(nil), differs, false)
		c.recordVerdict(now, sha256.Sum256(nil), v)
		return v
	}
	look(true)
	for range 8 {
		look(true)
		now = now.Add(c.changes.waitBetween(changePace))
	}
	if look(true); look(true).write {
		t.Error("one who insists is put back without a wait")
	}
	now = now.Add(calm + changePace.longest + time.Second)
	look(false)
	if !look(true).write || c.changes.times != 1 {
		t.Errorf("it is not over: %+v", c.changes)
	}
}
