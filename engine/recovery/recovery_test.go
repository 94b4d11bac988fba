// SPDX-License-Identifier: Apache-2.0

package recovery_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/recovery"
)

func TestPanicsAreErrors(t *testing.T) {
	var m map[string]int
	boom := func() error { m["a"] = 1; return nil }
	group := recovery.NewGroup("x", 2)
	group.Go(boom)
	var fromGo = make(chan error, 1)
	recovery.Go("x", func() { _ = boom() }, func(err error) { fromGo <- err })
	var fromWait error
	var wait recovery.WaitGroup
	wait.Go("x", func() { _ = boom() }, func(err error) { fromWait = err })
	wait.Wait()
	for name, err := range map[string]error{"Call": recovery.Call("x", boom), "Group": group.Wait(), "Go": <-fromGo, "WaitGroup": fromWait} {
		var p *recovery.Panic
		if !errors.As(err, &p) || !strings.Contains(err.Error(), "x panicked: assignment to entry in nil map") {
			t.Errorf("%s: got %v, want an error of the panic", name, err)
		}
	}
}

func TestAPanicIsTriedAgainUntilItIsNone(t *testing.T) {
	calls, want := 0, errors.New("an error ends it")
	err := recovery.CallUntilDone(context.Background(), "x", func(context.Context) error {
		if calls++; calls == 1 {
			panic("once")
		}
		return want
	})
	if calls != 2 || !errors.Is(err, want) {
		t.Errorf("got %d calls and %v, want 2 and %v", calls, err, want)
	}
}
