// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/record/sink"
)

func rec(id uint64) decision.Record {
	return decision.Record{ID: id, Point: rollout.PlanPoint().Name, Outcome: decision.Decided, Input: rollout.PlanInput{}, Output: rollout.PlanOutput{}}
}

// ids are the records in what was written.
func ids(t *testing.T, text []byte) string {
	t.Helper()
	records, err := record.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range records {
		out = append(out, fmt.Sprint(r.ID))
	}
	return strings.Join(out, " ")
}

// blocked is an output that takes nothing until it is let go, and cannot be told
// to stop.
type blocked struct {
	enter, let chan struct{}
	mu         sync.Mutex
	calls      int
}

func newBlocked() *blocked {
	return &blocked{enter: make(chan struct{}, 100), let: make(chan struct{})}
}

func (b *blocked) Write(context.Context, [][]byte) error {
	b.mu.Lock()
	b.calls++
	b.mu.Unlock()
	b.enter <- struct{}{}
	<-b.let
	return nil
}

func (b *blocked) Close() error { return nil }

func TestASinkThatBlocksForEverHoldsNoDecisionUp(t *testing.T) {
	out := newBlocked()
	s := sink.New("blocked", record.NewEncoder(), out, sink.WithCount(10))
	e, err := engine.New(fstest.MapFS{"rollout/plan.rego": {Data: []byte(
		"package rollout\n\nplan := {\"limit\": 1, \"maxUnavailable\": 1, \"holds\": [], \"scatter\": []}\n")}}, engine.WithSink(s), engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const made = 200
	for range made { // it would hang here
		if _, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{}, rollout.PlanInput{}); r.Outcome != decision.Decided {
			t.Fatalf("%+v", r)
		}
	}
	<-out.enter
	if got := s.CurrentStats(); got.Dropped != made-10 || got.Written != 0 {
		t.Errorf("%+v", got)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(over); err == nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "10 records were not written") {
		t.Errorf("it was closed with %v", err)
	}
	close(out.let) // the test leaves nothing behind
}

func TestASinkIsBounded(t *testing.T) {
	size := record.MemorySize(rec(1))
	for name, tc := range map[string]struct {
		opt  sink.Option
		kept uint64
	}{
		"by number": {sink.WithCount(7), 7},
		"by size":   {sink.WithBytes(5*size + size/2), 5},
	} {
		t.Run(name, func(t *testing.T) {
			out := newBlocked()
			s := sink.New("bounded", record.NewEncoder(), out, tc.opt)
			for i := range uint64(20) {
				s.RecordDecision(rec(i + 1))
			}
			if got := s.CurrentStats().Dropped; got != 20-tc.kept {
				t.Errorf("%d were dropped", got)
			}
			close(out.let)
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			s.RecordDecision(rec(21))
			if got := s.CurrentStats(); got.Written != tc.kept || got.Dropped != 21-tc.kept {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestLinesAreWrittenInOrder(t *testing.T) {
	var out bytes.Buffer
	var failed []error
	s := sink.New("stdout", record.NewEncoder(), sink.NewStream(&out), sink.WithPoints(rollout.PlanPoint().Name), sink.WithErrors(func(err error) { failed = append(failed, err) }))
	for i := range uint64(100) {
		s.RecordDecision(rec(i + 1))
		other := rec(1000 + i)
		other.Point = rollout.ScalePoint().Name
		s.RecordDecision(other)
	}
	odd := rec(999)
	odd.Input = make(chan int)
	s.RecordDecision(odd)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("closed again: %v", err)
	}
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprint(i+1))
	}
	if got := ids(t, out.Bytes()); got != strings.Join(want, " ") {
		t.Errorf("got %s", got)
	}
	if got := s.CurrentStats(); got != (sink.Stats{Written: 100, Failed: 1}) || len(failed) != 1 || !strings.Contains(failed[0].Error(), "record 999") {
		t.Errorf("%+v, %v", got, failed)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWhatCannotBeWrittenIsCounted(t *testing.T) {
	told := 0
	s := sink.New("stdout", record.NewEncoder(), sink.NewStream(failing{}), sink.WithErrors(func(error) { told++ }))
	s.RecordDecision(rec(1))
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.CurrentStats(); got != (sink.Stats{Failed: 1}) || told != 1 {
		t.Errorf("%+v, told %d times", got, told)
	}
}

// counting counts the lines of each write.
type counting struct {
	mu    sync.Mutex
	calls []int
}

func (c *counting) Write(_ context.Context, lines [][]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, len(lines))
	return nil
}

func (c *counting) Close() error { return nil }

func (c *counting) seen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.calls)
}

func TestLinesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &counting{}
		size := record.MemorySize(rec(1))
		s := sink.New("http", record.NewEncoder(), out, sink.WithBatch(100*size, time.Minute))
		for i := range uint64(5) {
			s.RecordDecision(rec(i + 1))
		}
		synctest.Wait()
		if got := out.seen(); got != "[]" {
			t.Errorf("at once: %s", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := out.seen(); got != "[5]" {
			t.Errorf("after a minute: %s", got)
		}
		for i := range uint64(100) {
			s.RecordDecision(rec(i + 1))
		}
		synctest.Wait()
		if got := out.seen(); got == "[5]" {
			t.Errorf("when it is full: %s", got)
		}
		s.RecordDecision(rec(1))
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.CurrentStats(); got != (sink.Stats{Written: 106}) {
			t.Errorf("%+v", got)
		}
	})
}

func TestHundredSinksLeaveNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 100 {
		f, err := sink.OpenFile(t.TempDir()+"/decisions.log", 100, 1)
		if err != nil {
			t.Fatal(err)
		}
		s := sink.New("file", record.NewEncoder(), f)
		for range i % 3 {
			s.RecordDecision(rec(1))
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	settles(t, before)
}

// settles waits for goroutines that are at their end to be gone.
func settles(t *testing.T, before int) {
	t.Helper()
	for range 5000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

func TestManyRecordAtOnce(t *testing.T) {
	out := &counting{}
	s := sink.New("many", record.NewEncoder(), out, sink.WithCount(50))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range uint64(200) {
				s.RecordDecision(rec(i + 1))
			}
		})
	}
	all.Wait()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.CurrentStats(); got.Written+got.Dropped != 1600 || got.Failed != 0 {
		t.Errorf("%+v", got)
	}
}
