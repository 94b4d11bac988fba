// SPDX-License-Identifier: Apache-2.0

package coalesce

import (
	"context"
	"testing"
	"time"
)

func TestCallersGetTheErrorOfAPanicAndTheNextAreAnswered(t *testing.T) {
	answers := make(chan error)
	c := &Queue[string, string]{
		Most: 1, Patience: time.Minute,
		Answer: func(_ context.Context, _ string, batch []string) {
			if batch[0] == "hostile" {
				panic("hostile")
			}
			answers <- nil
		},
		Fail: func(_ []string, err error) { answers <- err },
	}
	c.EnqueueCaller("key", "hostile")
	c.EnqueueCaller("key", "healthy")
	if err := <-answers; err == nil {
		t.Error("the panic is no error of its caller")
	}
	if err := <-answers; err != nil {
		t.Errorf("the next caller got %v, want an answer", err)
	}
}
