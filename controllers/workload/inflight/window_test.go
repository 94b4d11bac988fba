// SPDX-License-Identifier: Apache-2.0

package inflight

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// world is a Window with a clock of its own.
type world struct {
	*Window
	at time.Time
}

func newWorld() *world {
	w := &world{at: time.Unix(1_000_000, 0)}
	w.Window = New(func() time.Time { return w.at })
	return w
}

// answers has a whole bound of answers come, of writes that others waited behind.
func (w *world) answers(took time.Duration) {
	w.short = true
	for range w.CurrentLimit() {
		w.RecordAnswer("PATCH pods", took, false)
	}
}

func TestBound(t *testing.T) {
	const near, far = 5 * time.Millisecond, 100 * time.Millisecond
	tests := map[string]struct {
		events func(*world)
		want   func(limit int) bool
	}{
		"is what it was at first": {func(*world) {}, func(n int) bool { return n == first }},
		"grows while a near server keeps up": {func(w *world) {
			for range 20 {
				w.answers(near)
			}
		}, func(n int) bool { return n == most }},
		"grows while a distant server keeps up": {func(w *world) {
			for range 20 {
				w.answers(far)
			}
		}, func(n int) bool { return n == most }},
		"does not grow while no write waits": {func(w *world) {
			for range 2000 {
				w.RecordAnswer("PATCH pods", near, false)
			}
		}, func(n int) bool { return n == first }},
		"does not shrink for a few milliseconds more of a fast server": {func(w *world) {
			w.answers(time.Millisecond)
			for range 20 {
				w.answers(20 * time.Millisecond)
			}
		}, func(n int) bool { return n >= first }},
		"shrinks to the least while answers are late": {func(w *world) {
			w.answers(near)
			for range 40 {
				w.answers(20 * near)
			}
		}, func(n int) bool { return n == least }},
		"grows again when they are not": {func(w *world) {
			w.answers(near)
			for range 40 {
				w.answers(20 * near)
			}
			for range 20 {
				w.answers(near)
			}
		}, func(n int) bool { return n == most }},
		"stays while some are late": {func(w *world) {
			w.answers(near)
			n := w.CurrentLimit()
			for range 50 {
				w.short = true
				for i := range w.CurrentLimit() {
					took := near
					if i%3 == 0 {
						took = 20 * near
					}
					w.RecordAnswer("PATCH pods", took, false)
				}
			}
			if w.CurrentLimit() != n {
				w.limit = -1
			}
		}, func(n int) bool { return n > 0 }},
		"each sort of write has a pace of its own": {func(w *world) {
			for range 20 {
				w.short = true
				for i := range w.CurrentLimit() {
					sort, took := "PATCH pods/status", near
					if i%2 == 0 { // its webhooks take their time
						sort, took = "POST pods", 20*near
					}
					w.RecordAnswer(sort, took, false)
				}
			}
		}, func(n int) bool { return n == most }},
		"a server that is farther away from now on is late only for a while": {func(w *world) {
			w.answers(near)
			for range 40 {
				w.answers(far)
			}
			w.at = w.at.Add(baseLasts + time.Second)
			w.answers(far)
			w.at = w.at.Add(baseLasts + time.Second)
			for range 20 {
				w.answers(far)
			}
		}, func(n int) bool { return n == most }},
		"is halved once for all writes that are refused together": {func(w *world) {
			for range first {
				w.RecordAnswer("PATCH pods", near, true)
			}
		}, func(n int) bool { return n == first/2 }},
		"falls below the least while the server refuses": {func(w *world) {
			for range 10 {
				w.RecordAnswer("PATCH pods", near, true)
				w.at = w.at.Add(2 * time.Second)
			}
		}, func(n int) bool { return n == 1 }},
		"is not raised by late answers after that": {func(w *world) {
			w.answers(near)
			for range 10 {
				w.RecordAnswer("PATCH pods", near, true)
				w.at = w.at.Add(2 * time.Second)
			}
			for range 10 {
				w.answers(20 * near)
			}
		}, func(n int) bool { return n == 1 }},
		"recovers from that": {func(w *world) {
			for range 10 {
				w.RecordAnswer("PATCH pods", near, true)
				w.at = w.at.Add(2 * time.Second)
			}
			for range 60 {
				w.answers(near)
			}
		}, func(n int) bool { return n == most }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			tc.events(w)
			if !tc.want(w.CurrentLimit()) {
				t.Errorf("the bound is %d", w.CurrentLimit())
			}
		})
	}
}

// TestHoldersTakeTurns has a holder with few writes ask behind one with many: it is not to
// wait for all of them.
func TestHoldersTakeTurns(t *testing.T) {
	w := newWorld()
	w.limit = 1
	blocked := make(chan struct{})
	var group sync.WaitGroup
	var mu sync.Mutex
	var order []string
	do := func(h *Share, name string, waits bool) {
		before := waitersOf(w)
		group.Go(func() {
			_ = h.RunInTurn(func() error {
				if waits {
					<-blocked
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
				return nil
			})
		})
		for waitersOf(w) == before { // until it waits, or has its place
			time.Sleep(time.Millisecond)
		}
	}
	many, few := w.NewShare(), w.NewShare()
	do(many, "m", true)
	for range 4 {
		do(many, "m", false)
	}
	for range 2 {
		do(few, "f", false)
	}
	close(blocked)
	group.Wait()
	if got := strings.Join(order, ""); got != "mmfmfmm" {
		t.Errorf("the order is %s", got)
	}
}

func waitersOf(w *world) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.inFlight
	for _, h := range w.turns {
		n += len(h.waiting)
	}
	return n
}

func TestNoMoreThanTheBoundAreUnderWay(t *testing.T) {
	w := newWorld()
	var mu sync.Mutex
	now, highest := 0, 0
	var group sync.WaitGroup
	for range 4 {
		h := w.NewShare()
		for range 50 {
			group.Go(func() {
				_ = h.RunInTurn(func() error {
					mu.Lock()
					now++
					highest = max(highest, now)
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					now--
					mu.Unlock()
					return nil
				})
			})
		}
	}
	group.Wait()
	if highest > first {
		t.Errorf("%d were under way, want %d at most", highest, first)
	}
	if w.inFlight != 0 || len(w.turns) != 0 {
		t.Errorf("%d are under way in the end, %d wait", w.inFlight, len(w.turns))
	}
}

func TestAFixedBoundStays(t *testing.T) {
	w := NewFixed(3)
	for range 100 {
		w.short = true
		w.RecordAnswer("PATCH pods", time.Millisecond, false)
		w.RecordAnswer("PATCH pods", time.Millisecond, true)
	}
	if w.CurrentLimit() != 3 || w.MaxLimit() != 3 {
		t.Errorf("the bound is %d, %d at most", w.CurrentLimit(), w.MaxLimit())
	}
}

func TestTheErrorOfAnActIsReturnedAndItsPlaceIsFree(t *testing.T) {
	w := newWorld()
	want := errors.New("no")
	if err := w.NewShare().RunInTurn(func() error { return want }); !errors.Is(err, want) || w.inFlight != 0 {
		t.Errorf("got %v, %d under way", err, w.inFlight)
	}
}

func TestWhatIsWatched(t *testing.T) {
	tests := map[string]struct {
		method, path string
		code         int
		limit        int
		sort         string
	}{
		"a pod that is created":            {http.MethodPost, "/api/v1/namespaces/a/pods", 201, first, "POST pods"},
		"a status":                         {http.MethodPatch, "/api/v1/namespaces/a/pods/b/status", 200, first, "PATCH pods/status"},
		"a proxy in front":                 {http.MethodDelete, "/k8s/clusters/c/api/v1/namespaces/a/pods/b", 200, first, "DELETE pods"},
		"too many requests":                {http.MethodPatch, "/api/v1/namespaces/a/pods/b", 429, first / 2, ""},
		"an API server that goes":          {http.MethodPatch, "/api/v1/namespaces/a/pods/b", 503, first / 2, ""},
		"an eviction that a budget denies": {http.MethodPost, "/api/v1/namespaces/a/pods/b/eviction", 429, first, ""},
		"a read":                           {http.MethodGet, "/api/v1/namespaces/a/pods/b", 429, first, ""},
		"another kind":                     {http.MethodPatch, "/api/v1/namespaces/a/events/pods", 429, first, ""},
		"another group":                    {http.MethodPatch, "/apis/apps.kruise.io/v1alpha1/namespaces/a/clonesets/pods", 429, first, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(tc.code) }))
			defer server.Close()
			w := newWorld()
			request, err := http.NewRequestWithContext(t.Context(), tc.method, server.URL+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := w.WrapTransport(http.DefaultTransport).RoundTrip(request)
			if err != nil || response.StatusCode != tc.code {
				t.Fatalf("got %v, %v", response, err)
			}
			response.Body.Close()
			if w.CurrentLimit() != tc.limit {
				t.Errorf("the bound is %d, want %d", w.CurrentLimit(), tc.limit)
			}
			if known := w.bases[tc.sort] != nil; known != (tc.sort != "") {
				t.Errorf("the sorts are %v, want %q", w.bases, tc.sort)
			}
		})
	}
}
