// SPDX-License-Identifier: Apache-2.0

// Package sink sends records of decisions to a stream, a file, or a server that accepts the decision
// logs of OPA.
package sink

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// Output receives lines. Only one goroutine uses it.
type Output interface {
	// Write writes lines, each with a newline. It may retry until ctx is done. After an error the lines
	// are lost.
	Write(ctx context.Context, lines [][]byte) error
	Close() error
}

// Sink is an engine.Sink that passes records to an output in the background. A decision never waits
// for it: if the output is too slow, records are dropped and counted.
type Sink struct {
	name     string
	encoder  *record.Encoder
	out      Output
	count    int
	bytes    int
	batch    int
	wait     time.Duration
	points   []decision.Name
	onError  func(error)
	stop     context.CancelFunc
	wake     chan struct{} // has room for one signal that there are new records
	finished chan struct{}

	mu      sync.Mutex
	closed  bool
	pending []decision.Record
	held    int // records that are pending or being written
	size    int // their bytes
	waiting int // bytes of the pending records
	stats   Stats
}

// Stats counts records.
type Stats struct {
	// Written is how many records were written.
	Written uint64
	// Dropped is how many records were dropped for lack of room, or after Close.
	Dropped uint64
	// Failed is how many records could not be written.
	Failed uint64
}

// DefaultBytes is how much memory records that wait for an output may take.
const DefaultBytes = 16 << 20

// Option changes a sink.
type Option func(*Sink)

// WithCount sets how many records may wait; 10,000 if unset.
func WithCount(n int) Option { return func(s *Sink) { s.count = max(n, 1) } }

// WithBytes sets how much memory records that wait may take, roughly; DefaultBytes if unset.
func WithBytes(n int) Option { return func(s *Sink) { s.bytes = n } }

// WithBatch sets how many bytes are written at once, roughly, and how long to wait for that many. If
// unset it is 1 MiB, without a wait.
func WithBatch(bytes int, wait time.Duration) Option {
	return func(s *Sink) { s.batch, s.wait = bytes, wait }
}

// WithPoints limits the sink to decisions of some points; none means all.
func WithPoints(points ...decision.Name) Option {
	return func(s *Sink) { s.points = slices.Clone(points) }
}

// WithErrors makes the writing goroutine call f when lines are lost.
func WithErrors(f func(error)) Option { return func(s *Sink) { s.onError = f } }

// New makes a sink that writes encoded records. It must be closed, which closes the output.
func New(name string, encoder *record.Encoder, out Output, opts ...Option) *Sink {
	s := &Sink{
		name: name, encoder: encoder, out: out, count: 10_000, bytes: DefaultBytes, batch: 1 << 20,
		onError: func(error) {}, wake: make(chan struct{}, 1), finished: make(chan struct{}),
	}
	for _, o := range opts {
		o(s)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	recovery.Go("sink", func() { s.runWriter(ctx) }, nil)
	return s
}

// Name is the name of the sink in metrics.
func (s *Sink) Name() string { return s.name }

// CurrentStats returns the counts so far.
func (s *Sink) CurrentStats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// RecordDecision implements engine.Sink.
func (s *Sink) RecordDecision(r decision.Record) {
	if len(s.points) > 0 && !slices.Contains(s.points, r.Point) {
		return
	}
	size := record.MemorySize(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.held >= s.count || s.size+size > s.bytes {
		s.stats.Dropped++
		return
	}
	s.pending = append(s.pending, r)
	s.held++
	s.size += size
	s.waiting += size
	s.wakeWriter()
}

func (s *Sink) wakeWriter() {
	select {
	case s.wake <- struct{}{}:
	default: // it was signaled already
	}
}

// Close writes the remaining records until ctx is done, and closes the output. Records that could not
// be written by then are lost, and counted as failed. Close does not wait for an output that blocks
// all the same.
func (s *Sink) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wakeWriter()
	defer s.stop()
	select {
	case <-s.finished:
		return nil
	case <-ctx.Done():
	}
	s.stop()
	select {
	case <-s.finished:
	case <-time.After(100 * time.Millisecond): // an output that respects its context has stopped
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("closing the log of decisions %s: %w: %d records were not written", s.name, context.Cause(ctx), s.stats.Failed+uint64(s.held))
}

func (s *Sink) runWriter(ctx context.Context) {
	defer close(s.finished)
	defer func() {
		if err := s.out.Close(); err != nil {
			s.onError(fmt.Errorf("closing %s: %w", s.name, err))
		}
	}()
	for {
		records, size, more := s.takeBatch(ctx)
		if !more {
			return
		}
		if err := recovery.Call("sink", func() error { s.writeBatch(ctx, records); return nil }); err != nil {
			s.onError(err)
		}
		s.mu.Lock()
		s.held -= len(records)
		s.size -= size
		s.mu.Unlock()
	}
}

// takeBatch waits for a batch of records; more is false if there will be none.
func (s *Sink) takeBatch(ctx context.Context) (records []decision.Record, size int, more bool) {
	var enough <-chan time.Time // nil until there is a record
	for {
		s.mu.Lock()
		closed := s.closed
		if len(s.pending) > 0 && (closed || s.wait == 0 || s.waiting >= s.batch) {
			break
		}
		if closed {
			s.mu.Unlock()
			return nil, 0, false
		}
		if len(s.pending) > 0 && enough == nil {
			timer := time.NewTimer(s.wait)
			defer timer.Stop()
			enough = timer.C
		}
		s.mu.Unlock()
		select {
		case <-s.wake:
			continue
		case <-enough:
		case <-ctx.Done():
		}
		s.mu.Lock()
		break
	}
	defer s.mu.Unlock()
	n := 0
	for n < len(s.pending) && (n == 0 || size < s.batch) {
		size += record.MemorySize(s.pending[n])
		n++
	}
	records = slices.Clone(s.pending[:n])
	s.pending = slices.Delete(s.pending, 0, n)
	s.waiting -= size
	return records, size, true
}

func (s *Sink) writeBatch(ctx context.Context, records []decision.Record) {
	var lines [][]byte
	var failed, written uint64
	flush := func() {
		if len(lines) == 0 {
			return
		}
		if err := s.out.Write(ctx, lines); err != nil {
			failed += uint64(len(lines))
			s.onError(fmt.Errorf("writing decisions to %s: %w", s.name, err))
		} else {
			written += uint64(len(lines))
		}
		lines = nil
	}
	size := 0
	for _, r := range records {
		line, err := s.encoder.AppendLine(nil, r)
		if err != nil {
			failed++
			s.onError(err)
			continue
		}
		if size += len(line); size > s.batch {
			flush()
			size = len(line)
		}
		lines = append(lines, line)
	}
	flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Written += written
	s.stats.Failed += failed
}
