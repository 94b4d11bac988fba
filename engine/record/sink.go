package record

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/regatta-sh/regatta/engine/decision"
)

// queue hands records to one goroutine. When it is full they are dropped and
// counted, because a decision never waits for its record.
type queue struct {
	records chan decision.Record
	done    chan struct{}
	once    sync.Once
	mu      sync.RWMutex
	closed  bool
	dropped atomic.Uint64
}

func newQueue(size int, take func(decision.Record)) *queue {
	q := &queue{records: make(chan decision.Record, size), done: make(chan struct{})}
	go func() {
		defer close(q.done)
		for r := range q.records {
			take(r)
		}
	}()
	return q
}

// Record implements engine.Sink.
func (q *queue) Record(r decision.Record) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if !q.closed {
		select {
		case q.records <- r:
			return
		default:
		}
	}
	q.dropped.Add(1)
}

// Dropped is how many records came too fast.
func (q *queue) Dropped() uint64 { return q.dropped.Load() }

// Close waits until everything that was taken is dealt with.
func (q *queue) Close() {
	q.once.Do(func() {
		q.mu.Lock()
		q.closed = true
		close(q.records)
		q.mu.Unlock()
	})
	<-q.done
}

// Lines is a sink that writes records as lines of JSON.
type Lines struct {
	*queue
	mu  sync.Mutex
	err error
}

// NewLines makes a sink that writes to w.
func NewLines(w io.Writer) *Lines {
	l := &Lines{}
	l.queue = newQueue(1000, func(r decision.Record) {
		if err := Write(w, []decision.Record{r}); err != nil {
			l.mu.Lock()
			l.err = err
			l.mu.Unlock()
		}
	})
	return l
}

// Err is the last error of writing.
func (l *Lines) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
