// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

func TestOneBundleIsCheckedAtATime(t *testing.T) {
	gate := &turn{}
	release, err := gate.acquireTurn(t.Context(), "shop", func() { t.Error("the first one waits") })
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []string
	var all sync.WaitGroup
	for _, ns := range []string{"shop", "shop", "shop", "bank", ""} {
		waits := make(chan struct{})
		all.Go(func() {
			release, err := gate.acquireTurn(t.Context(), ns, func() { close(waits) })
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, ns)
			mu.Unlock()
			release()
		})
		<-waits
	}
	left, leave := context.WithCancel(t.Context())
	waits := make(chan struct{})
	all.Go(func() {
		if _, err := gate.acquireTurn(left, "left", func() { close(waits) }); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	<-waits
	leave()
	func() { // a waiter that panics leaves
		defer func() { _ = recover() }()
		_, _ = gate.acquireTurn(t.Context(), "panics", func() { panic("x") })
	}()
	release()
	all.Wait()
	if want := []string{"", "bank", "shop", "shop", "shop"}; !slices.Equal(order, want) {
		t.Errorf("the order is %q, want %q", order, want)
	}
	release, err = gate.acquireTurn(t.Context(), "shop", func() { t.Error("the gate is not free afterwards") })
	if err != nil {
		t.Fatal(err)
	}
	release()
}
