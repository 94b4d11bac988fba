// SPDX-License-Identifier: Apache-2.0

package coalesce_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/workload/coalesce"
)

// However many callers come, answers are as far apart as they are to be; each caller has one.
func TestAnswersAreApart(t *testing.T) {
	const every, callers = 20 * time.Millisecond, 200
	var answers, answered atomic.Int32
	var all sync.WaitGroup
	all.Add(callers)
	c := coalesce.Queue[string, func()]{Most: 50, Patience: time.Minute, Every: every, Answer: func(_ context.Context, _ string, batch []func()) {
		answers.Add(1)
		for _, done := range batch {
			done()
		}
	}}
	begun := time.Now()
	for range callers {
		go func() {
			c.EnqueueCaller("web", func() { answered.Add(1); all.Done() })
		}()
	}
	all.Wait()
	if most := 1 + int(time.Since(begun)/every); int(answers.Load()) > most || answered.Load() != callers {
		t.Errorf("%d answers for %d callers, want at most %d", answers.Load(), answered.Load(), most)
	}
}
