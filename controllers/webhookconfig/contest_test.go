// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"pgregory.net/rapid"
)

// TestAContestIsBoundedAndLost holds that whatever other clients do and when: what is wanted anew is written at once, what they change
// is put back within the longest wait, and the writes that they cause grow with the time and not with theirs.
func TestAContestIsBoundedAndLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c configurationContest
		now := time.Unix(1_000_000, 0)
		begin, wanted, own, caused := now, 0, 0, 0
		differs, left := true, exemptions{} // as at the first look
		var since time.Time                 // when something was changed that is not put back yet
		for range rapid.IntRange(1, 300).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 120).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				wanted, differs = wanted+1, true
				own++
			case 1, 2, 3, 4:
				differs = true
			case 5, 6, 7, 8:
				left["a"] = append(left["a"], leavesOut(rapid.IntRange(0, 2).Draw(t, "label")))
			}
			if differs && since.IsZero() {
				since = now
			}
			hash := sha256.Sum256([]byte{byte(wanted), byte(wanted >> 8)})
			fresh := hash != c.wanted
			v := c.judgeChange(now, hash, differs, left)
			if fresh && differs && !v.write {
				t.Fatal("what is wanted anew waits")
			}
			if len(v.kept["a"]) < len(left["a"]) && !v.write {
				t.Fatal("what is not kept is not put back")
			}
			for _, r := range v.kept["a"] {
				if _, known := c.exemptions[identifyRequirement(r)]; !known && c.changes.timeLeft(now, changePace) == 0 {
					t.Fatal("what is new is kept")
				}
			}
			c.recordVerdict(now, hash, v)
			if v.write {
				if !fresh {
					caused++
				}
				differs, left, since = false, v.kept, time.Time{}
			}
			if !since.IsZero() && now.Sub(since) > changePace.longest {
				t.Fatalf("it is changed for %s", now.Sub(since))
			}
		}
		// 9 doublings, and 11 of each requirement, then one for each of the longest waits; and one more for each time of calm.
		passed := now.Sub(begin)
		if most := 9 + 3*11 + 2 + int(passed/changePace.longest) + 4*int(passed/calm); caused > most {
			t.Fatalf("%d writes in %s, want at most %d beside %d of our own", caused, passed, most, own)
		}
	})
}

func leavesOut(label int) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: fmt.Sprint("label-", label), Operator: metav1.LabelSelectorOpDoesNotExist}
}

// TestARequirementHasNoWaitOfAnother holds that a client that leaves out other namespaces than a platform does is put back as one that changes something.
func TestARequirementHasNoWaitOfAnother(t *testing.T) {
	var c configurationContest
	now := time.Unix(1_000_000, 0)
	look := func(labels ...int) contestDecision {
		left := exemptions{}
		for _, label := range labels {
			left["a"] = append(left["a"], leavesOut(label))
		}
		v := c.judgeChange(now, sha256.Sum256(nil), false, left)
		c.recordVerdict(now, sha256.Sum256(nil), v)
		return v
	}
	for range 12 {
		look(0)
		now = now.Add(c.exemptions[identifyRequirement(leavesOut(0))].waitBetween(exemptionPace))
	}
	look(0)
	now = now.Add(time.Hour)
	v := look(0, 1)
	if !v.write || len(v.kept["a"]) != 1 || v.kept["a"][0].Key != "label-0" {
		t.Fatalf("a new one is kept with the first: %+v", v.kept)
	}
	// One that takes another requirement each time gets no more writes than one that changes something.
	writes, begin, longest := 0, now, now
	for label := 2; now.Sub(begin) < time.Hour; label++ {
		now = now.Add(time.Second)
		if v := look(0, label); v.write {
			writes, longest = writes+1, now
		} else if now.Sub(longest) > changePace.longest {
			t.Fatalf("namespaces stay left out for %s", now.Sub(longest))
		}
	}
	if writes > 25 || len(c.exemptions) > mostExemptions {
		t.Errorf("%d writes in an hour, %d requirements are known", writes, len(c.exemptions))
	}
}

// TestAContestIsOverWhenItIsCalm holds that one who changes something a day later is put back at once.
func TestAContestIsOverWhenItIsCalm(t *testing.T) {
	var c configurationContest
	now := time.Unix(1_000_000, 0)
	look := func(differs bool) contestDecision {
		v := c.judgeChange(now, sha256.Sum256(nil), differs, nil)
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

// TestAContestMakesFewEvents holds that a client which changes something else each time makes an event a minute, and that the last of
// its changes is reported.
func TestAContestMakesFewEvents(t *testing.T) {
	now, events := time.Unix(1_000_000, 0), record.NewFakeRecorder(1000)
	w := &Writer{Now: func() time.Time { return now }, Events: events}
	var c configurationContest
	want := []admissionv1.ValidatingWebhook{{Name: "a"}}
	look := func(label int, changed string) {
		read := []admissionv1.ValidatingWebhook{{Name: "a"}, {Name: changed}}
		left := exemptions{"a": {leavesOut(label)}}
		if err := settleWebhooks(w, &c, &admissionv1.ValidatingWebhookConfiguration{}, read, want, left, "", changed != "", func([]admissionv1.ValidatingWebhook) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 600 {
		look(i, fmt.Sprint("changed-", i))
		now = now.Add(time.Second)
	}
	if most := 2 * 11; len(events.Events) > most {
		t.Errorf("in ten minutes there are %d events, want at most %d", len(events.Events), most)
	}
	for len(events.Events) > 0 {
		<-events.Events
	}
	now = now.Add(lookAgain)
	look(600, "changed-600")
	if text := <-events.Events; !strings.Contains(text, "changed-600") {
		t.Errorf("the last event is %q", text)
	}
}
