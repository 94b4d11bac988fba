// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"
	"time"

	"github.com/regatta-sh/regatta/engine/recovery"
)

// workers evaluate. They are reused, since an evaluation needs a deep stack, which a new goroutine
// would have to grow each time.
type workers struct {
	jobs chan *evaluation
	quit chan struct{}
	once sync.Once

	mu      sync.Mutex
	running int // without those that are stuck
	stuck   int
	max     int
}

// mostReplaced is how many stuck workers are replaced: as many as there are workers, plus the trials that release their slots.
func (w *workers) mostReplaced() int { return w.max + mostEndless }

// idle is how long a worker waits for another evaluation.
const idle = 30 * time.Second

func newWorkers(limit int) *workers {
	return &workers{jobs: make(chan *evaluation), quit: make(chan struct{}), max: limit}
}

// dispatchQueue returns the channel to send an evaluation to. It is nil if a worker has the
// evaluation already, or if the workers have stopped. It starts a worker if none is idle and the limit
// allows another one.
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
		// A worker that was stuck has been replaced. If all others run, there is one too many.
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

// addStuckWorker makes room for another worker in place of one that is stuck. The number is bounded,
// since stuck workers use processors that other work needs.
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
