// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func take(s *Slots, namespace string, times int) (got int) {
	for range times {
		if s.TryAcquire(namespace) {
			got++
		}
	}
	return got
}

func TestOneNamespaceLeavesSlotsToTheOthers(t *testing.T) {
	s := New(32)
	if got := take(s, "greedy", 100); got != 16 {
		t.Errorf("a namespace alone gets %d of 32 slots, want 16", got)
	}
	for i := range 5 {
		if got := take(s, fmt.Sprint("other-", i), 1); got != 1 {
			t.Errorf("namespace %d gets no slot", i)
		}
	}
	if got := take(s, "greedy", 1); got != 0 {
		t.Error("a namespace that holds more than are free gets another one")
	}
}

func TestFewSlotsAreAllUsed(t *testing.T) {
	for n := 1; n < fewest; n++ {
		if got := take(New(n), "shop", 10); got != n {
			t.Errorf("%d of %d slots are used", got, n)
		}
	}
}

func TestWhoHoldsTheFewestIsNext(t *testing.T) {
	s := New(2)
	take(s, "greedy", 2)
	order := make(chan string, 3)
	for i, namespace := range []string{"greedy", "greedy", "modest"} {
		go func() {
			if s.Acquire(t.Context(), namespace) == nil {
				order <- namespace
			}
		}()
		waitFor(s, i+1)
	}
	s.Release("greedy")
	if got := <-order; got != "modest" {
		t.Errorf("%s is next, want the namespace that holds none", got)
	}
}

func TestWhoNoLongerWaitsTakesNothing(t *testing.T) {
	s := New(1)
	take(s, "shop", 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Acquire(ctx, "shop") }()
	waitFor(s, 1)
	cancel()
	if err := <-ended; err == nil {
		t.Fatal("a slot was granted that is not free")
	}
	s.Release("shop")
	if take(s, "shop", 1) != 1 {
		t.Error("the slot is lost")
	}
}

func waitFor(s *Slots, waiting int) {
	for {
		s.mu.Lock()
		n := len(s.waiting)
		s.mu.Unlock()
		if n == waiting {
			return
		}
	}
}

func TestSlotsAreNeitherLostNorMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "slots")
		s, held := New(n), map[string]int{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			namespace := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "namespace")
			if rapid.Bool().Draw(t, "release") && held[namespace] > 0 {
				s.Release(namespace)
				held[namespace]--
			} else if s.TryAcquire(namespace) {
				held[namespace]++
			}
			sum := 0
			for namespace, h := range held {
				sum += h
				if n >= fewest && h > (n+1)/2 {
					t.Fatalf("%s holds %d of %d", namespace, h, n)
				}
			}
			if sum+s.free != n || s.free < 0 {
				t.Fatalf("%d are held and %d are free of %d", sum, s.free, n)
			}
		}
	})
}
