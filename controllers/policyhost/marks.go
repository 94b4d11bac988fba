// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/regatta-sh/regatta/engine/recovery"
)

const (
	marksFile = "loading.json"
	// mostMarks and mostMarkBytes bound the file: bundles beyond that are loaded without a mark.
	mostMarks, mostMarkBytes = 1000, 1 << 20
	// mostEnded is how many processes may end while a bundle has a mark. The next one
	// leaves the bundle out.
	mostEnded = 2
	// probation is how long a bundle must have decided before its mark is removed.
	probation = time.Minute
	// allTurns is how long the turns of all suspected bundles may take together.
	allTurns, shortestTurn = 2 * time.Minute, time.Second
	// banFor is how long a bundle is left out before it is tried once more.
	banFor = time.Hour
	// forgetAfter is how long a mark is kept that no process renews.
	forgetAfter = 24 * time.Hour
)

// mark records that a process was about to load a bundle, or had just begun to decide by it.
type mark struct {
	Bundle string `json:"bundle"`
	// Begun is how many processes had the mark.
	Begun int       `json:"begun"`
	Time  time.Time `json:"time"`
}

// endsProcessError reports a bundle that is left out since processes ended while they loaded it or began to
// decide by it.
type endsProcessError struct {
	ended int
	until time.Time
}

func (e endsProcessError) Error() string {
	return fmt.Sprintf("the process ended %d times while it loaded this revision or had just begun to decide by it; it is tried again after %s, and another revision at once", e.ended, e.until.UTC().Format(time.RFC3339))
}

// waitsError reports a bundle whose turn comes after that of another.
type waitsError struct{ other string }

func (e waitsError) Error() string {
	return fmt.Sprintf("the last process ended while it loaded this revision, others, or had just begun to decide by them; they are loaded one after the other, and it is the turn of %s", e.other)
}

// marks are stored in a file beside the bundles, so that the next process knows which bundles may have
// ended the last one. But the process may also have ended for another reason, such as a restart of the
// machine. So bundles with a mark of an earlier process are loaded one after the other, and only a
// bundle that ends a process again is banned. Methods of a nil value do nothing.
type marks struct {
	path  string
	clock func() time.Time
	after func(time.Duration, func())
	// next is called when another bundle may have its turn.
	next func()

	mu  sync.Mutex
	all map[string]mark
	// mine are the marks of this process; true once the removal of the mark is scheduled.
	mine map[string]bool
	// suspects are the bundles that had a mark when the process began; turn is the one that has its turn.
	suspects map[string]bool
	turn     string
	turnFor  time.Duration
}

// newMarks reads the marks that an earlier process has left in a directory.
func newMarks(dir string, next func()) *marks {
	m := &marks{
		path: filepath.Join(dir, marksFile), clock: time.Now, next: next,
		all: map[string]mark{}, mine: map[string]bool{}, suspects: map[string]bool{},
	}
	m.after = func(d time.Duration, f func()) {
		time.AfterFunc(d, func() { _ = recovery.Call("policyhost", func() error { f(); return nil }) })
	}
	if err := m.readFromFile(); err != nil {
		klog.ErrorS(err, "It is not known with which policy bundles the last process may have ended")
		m.all = nil
	}
	if m.all == nil {
		m.all = map[string]mark{}
	}
	for id, was := range m.all {
		if m.clock().Sub(was.Time) > forgetAfter { // the bundle was not loaded again since
			delete(m.all, id)
			continue
		}
		m.suspects[id] = true
	}
	m.turnFor = max(min(probation, allTurns/time.Duration(max(len(m.suspects), 1))), shortestTurn)
	return m
}

func (m *marks) readFromFile() error {
	f, err := os.Open(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostMarkBytes))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &m.all)
}

// saveToFile writes the file. The caller holds the lock.
func (m *marks) saveToFile() {
	data, err := json.Marshal(m.all)
	if err == nil {
		err = writeFile(filepath.Dir(m.path), marksFile, data)
	}
	if err != nil {
		klog.ErrorS(err, "The next process will not know with which policy bundles this one may end")
	}
}

// beginLoad marks a bundle that is about to be loaded, by its content. It returns a permanent error if
// the bundle is left out, or must wait for its turn.
func (m *marks) beginLoad(id string, key Key) error {
	if m == nil || id == "" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, has := m.mine[id]; has {
		return nil
	}
	now, was := m.clock(), m.all[id]
	if until := was.Time.Add(banFor); was.Begun >= mostEnded {
		if now.Before(until) {
			return endsProcessError{was.Begun, until}
		}
		was.Begun = mostEnded - 1
	}
	if m.suspects[id] {
		if m.turn != "" {
			return waitsError{m.all[m.turn].Bundle}
		}
		m.turn = id
	}
	if len(m.all) >= mostMarks && was.Begun == 0 {
		return nil
	}
	m.all[id] = mark{Bundle: nameOf(key), Begun: was.Begun + 1, Time: now}
	m.mine[id] = false
	m.saveToFile()
	return nil
}

// scheduleClear notes that a bundle decides, or was refused: its mark is removed after a while.
func (m *marks) scheduleClear(id string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if set, has := m.mine[id]; !has || set {
		return
	}
	m.mine[id] = true
	d := probation
	if m.suspects[id] {
		d = m.turnFor
	}
	m.after(d, func() { m.clearEntry(id) })
}

// clearEntry removes a mark.
func (m *marks) clearEntry(id string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	_, has := m.mine[id]
	if has {
		delete(m.mine, id)
		delete(m.all, id)
		delete(m.suspects, id)
		m.saveToFile()
	}
	turned := m.turn == id && id != ""
	if turned {
		m.turn = ""
	}
	m.mu.Unlock()
	if turned {
		m.next()
	}
}

// clearOwnEntries removes all marks of this process, which ends normally.
func (m *marks) clearOwnEntries() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.mine) == 0 {
		return
	}
	for _, id := range slices.Collect(maps.Keys(m.mine)) {
		delete(m.all, id)
		delete(m.mine, id)
	}
	m.saveToFile()
}
