// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"
	"time"

	"github.com/regatta-sh/regatta/engine/recovery"
)

// workers evaluate. They are kept, because evaluating needs a deep stack and a
// new goroutine would have to grow one each time.
type workers struct {
	jobs chan *evaluation
	quit chan struct{}
	once sync.Once

	mu      sync.Mutex
	running int // without those that are stuck
	stuck   int
	max     int
}

// mostReplaced is how many that are stuck have others in their place: as many as there are workers, and the trials that leave their slots to
// others beside those.
func (w *workers) mostReplaced() int { return w.max + mostEndless }

// idle is how long a worker waits for more to do.
const idle = 30 * time.Second

func newWorkers(limit int) *workers {
	return &workers{jobs: make(chan *evaluation), quit: make(chan struct{}), max: limit}
}

// dispatchQueue returns the channel to send an evaluation to. It is nil if a worker has the
// evaluation already, or if the workers have stopped. queue starts a worker if none
// is idle and the limit allows another one.
func (w *workers) dispatchQueue(ev *evaluation) chan<- *evaluation {
	select {
	case <-w.quit:
		return nil
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running < w.max {
		select {
		case w.jobs <- ev: // a worker is idle
			ev.started = true
			return nil
		default:
		}
		w.running++
		ev.started = true
		recovery.Go("engine", func() { w.runWorker(ev) }, nil) // an evaluation recovers by itself
		return nil
	}
	return w.jobs
}

func (w *workers) runWorker(ev *evaluation) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		ev.evaluateQuery()
		w.mu.Lock()
		// One that was stuck has been replaced; if all the others are there, it
		// is one too many.
		if w.running > w.max {
			w.running--
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		timer.Reset(idle)
		select {
		case ev = <-w.jobs:
		case <-timer.C:
			w.removeWorker()
			return
		case <-w.quit:
			w.removeWorker()
			return
		}
	}
}

func (w *workers) removeWorker() {
	w.mu.Lock()
	w.running--
	w.mu.Unlock()
}

// addStuckWorker makes room for another worker in place of one that is stuck. There is an
// end to that: stuck workers take processors away from everything else.
func (w *workers) addStuckWorker() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stuck++
	if w.stuck <= w.mostReplaced() {
		w.running--
	}
}

func (w *workers) removeStuckWorker() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stuck <= w.mostReplaced() {
		w.running++
	}
	w.stuck--
}

func (w *workers) stopWorkers() { w.once.Do(func() { close(w.quit) }) }
