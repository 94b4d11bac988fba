// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// process is one that begins to load bundles, with a clock and timers of the test.
type process struct {
	*testing.T
	*marks
	timers []func()
	told   int
}

func newProcess(t *testing.T, dir string, now time.Time) *process {
	p := &process{T: t}
	p.marks = newMarks(dir, func() { p.told++ })
	p.clock = func() time.Time { return now }
	p.after = func(_ time.Duration, f func()) { p.timers = append(p.timers, f) }
	return p
}

// wants begins to load a bundle: it may be loaded, waits, or is left out.
func (p *process) wants(id, want string) {
	p.Helper()
	got := "loaded"
	err := p.beginLoad(id, Key{Name: id})
	switch {
	case errors.As(err, new(waitsError)):
		got = "waits"
	case errors.As(err, new(endsProcessError)):
		got = "left out"
	case err != nil:
		got = err.Error()
	}
	if got != want {
		p.Errorf("bundle %s: %s, want %s (%v)", id, got, want, err)
	}
}

// elapse lets the time of all bundles that decide be over.
func (p *process) elapse() {
	for _, f := range p.timers {
		f()
	}
	p.timers = nil
}

func TestABundleThatEndsTheProcessIsLeftOut(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	for range mostEnded {
		newProcess(t, dir, now).wants("bad", "loaded") // and the process ends
	}
	third := newProcess(t, dir, now.Add(time.Minute))
	third.wants("bad", "left out")
	third.wants("good", "loaded")
	third.wants("bad, mended", "loaded")
	third.clearOwnEntries()
	later := newProcess(t, dir, now.Add(banFor+time.Minute))
	later.wants("bad", "loaded")
	newProcess(t, dir, now.Add(banFor+2*time.Minute)).wants("bad", "left out")
}

// A process that ended for another reason costs at most one bundle, though all had a mark.
func TestAProcessThatEndsTwiceLeavesAtMostOneBundleOut(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	first := newProcess(t, dir, now)
	for _, id := range []string{"a", "b", "c"} {
		first.wants(id, "loaded")
		first.scheduleClear(id)
	}
	second := newProcess(t, dir, now) // the machine was restarted
	second.wants("a", "loaded")
	second.wants("a", "loaded") // another look is no other process
	second.wants("b", "waits")
	second.wants("new", "loaded")
	second.scheduleClear("a")
	if second.elapse(); second.told != 1 {
		t.Errorf("those that wait are told %d times", second.told)
	}
	second.wants("b", "loaded")
	second.wants("c", "waits")
	third := newProcess(t, dir, now) // and once more
	third.wants("b", "left out")
	third.wants("a", "loaded")
	third.wants("c", "loaded")
}

func TestMarksOfAProcessThatEndsAsItShould(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	for range 2 * mostEnded {
		p := newProcess(t, dir, now)
		p.wants("a", "loaded")
		p.wants("b", "loaded")
		p.scheduleClear("a")
		p.elapse()
		p.clearOwnEntries()
	}
	for range 2 * mostEnded { // or ends when all have decided for a while
		p := newProcess(t, dir, now)
		p.wants("a", "loaded")
		p.scheduleClear("a")
		p.elapse()
	}
}

func TestMarksAreBounded(t *testing.T) {
	dir := t.TempDir()
	var p *process
	for _, text := range []string{"torn", "null", `{"old":{"bundle":"old","begun":2,"time":"2020-01-01T00:00:00Z"}}`} {
		if err := os.WriteFile(filepath.Join(dir, marksFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if p = newProcess(t, dir, time.Now()); len(p.all) != 0 || len(p.suspects) != 0 {
			t.Errorf("of %s it has %v", text, p.all)
		}
	}
	for n := range mostMarks {
		p.all[fmt.Sprint(n)] = mark{Begun: 1}
	}
	p.wants("one more", "loaded")
	if len(p.all) != mostMarks {
		t.Errorf("there are %d marks", len(p.all))
	}
	var none *marks
	if err := none.beginLoad("x", Key{}); err != nil {
		t.Error(err)
	}
	none.scheduleClear("x")
	none.clearEntry("x")
	none.clearOwnEntries()
}
