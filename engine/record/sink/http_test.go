// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/record/sink"
)

// logServer takes decision logs as a server of OPA's does.
type logServer struct {
	*httptest.Server
	answer func(n int, w http.ResponseWriter, r *http.Request) bool // true takes it

	mu     sync.Mutex
	events []map[string]any
	calls  int
	chunks []int
	seen   []http.Header
}

func newLogServer(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request) bool) *logServer {
	t.Helper()
	s := &logServer{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := events(r)
		s.mu.Lock()
		s.calls++
		n := s.calls
		s.seen = append(s.seen, r.Header)
		s.mu.Unlock()
		r.Header.Set("Events", fmt.Sprint(len(body)))
		if err != nil {
			t.Errorf("it is sent what it cannot read: %v", err)
		}
		if s.answer != nil && !s.answer(n, w, r) {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, body...)
		s.chunks = append(s.chunks, len(body))
	}))
	t.Cleanup(s.Close)
	return s
}

func events(r *http.Request) (out []map[string]any, err error) {
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Content-Encoding") != "gzip" {
		return nil, fmt.Errorf("%s %v", r.Method, r.Header)
	}
	zip, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(text, &out)
}

func (s *logServer) ids() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, e := range s.events {
		out = append(out, fmt.Sprint(e["decision_id"]))
	}
	return strings.Join(out, " ")
}

func posted(t *testing.T, url string, n int, opts ...sink.HTTPOption) sink.Stats {
	t.Helper()
	out, err := sink.NewHTTP(url, append([]sink.HTTPOption{sink.WithDelay(time.Millisecond, 2*time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	s := sink.New("http", record.NewEncoder(record.WithOrigin("me")), out, sink.WithBatch(1<<20, time.Hour))
	for i := range n {
		s.RecordDecision(rec(uint64(i + 1)))
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s.CurrentStats()
}

func TestServersAreSentWhatOPASends(t *testing.T) {
	server := newLogServer(t, nil)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "second"} { // it is read for every upload
		if err := os.WriteFile(token, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := posted(t, server.URL+"/logs", 2, sink.WithTokenFile(token), sink.WithHeaders(map[string]string{"X-Tenant": "shop"})); got != (sink.Stats{Written: 2}) {
			t.Errorf("%+v", got)
		}
		if h := server.seen[len(server.seen)-1]; h.Get("Authorization") != "Bearer "+want || h.Get("X-Tenant") != "shop" {
			t.Errorf("headers %v", h)
		}
	}
	for _, name := range []string{"decision_id", "path", "input", "result", "timestamp", "metrics"} {
		if server.events[0][name] == nil {
			t.Errorf("there is no %s in %v", name, server.events[0])
		}
	}
	if got := server.ids(); got != "me-1 me-2 me-1 me-2" {
		t.Errorf("got %s", got)
	}
}

func TestServersThatAreNotWell(t *testing.T) {
	hangUp := func(w http.ResponseWriter) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
	}
	for name, tc := range map[string]struct {
		answer func(n int, w http.ResponseWriter, r *http.Request) bool
		want   sink.Stats
		calls  int
	}{
		"one that fails for a while": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n <= 4 {
				w.WriteHeader(http.StatusInternalServerError)
			}
			return n > 4
		}, sink.Stats{Written: 6}, 5},
		"one that hangs up": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n <= 2 {
				hangUp(w)
			}
			return n > 2
		}, sink.Stats{Written: 6}, 3},
		"one that does not know the token yet": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n == 1 {
				w.WriteHeader(http.StatusUnauthorized)
			}
			return n > 1
		}, sink.Stats{Written: 6}, 2},
		"one that will never take it": {func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusBadRequest)
			return false
		}, sink.Stats{Failed: 6}, 1},
		"one that redirects": {func(_ int, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return false
		}, sink.Stats{Failed: 6}, 1},
		"one that wants less at a time": {func(_ int, w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Events") > "2" {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return false
			}
			return true
		}, sink.Stats{Written: 6}, 7}, // 6, 3, 1, 2, 3, 1, 2
	} {
		t.Run(name, func(t *testing.T) {
			server := newLogServer(t, tc.answer)
			got := posted(t, server.URL, 6)
			if got != tc.want || tc.calls > 0 && server.calls != tc.calls {
				t.Errorf("%+v after %d requests of %v", got, server.calls, server.chunks)
			}
			if got.Written > 0 && server.ids() != "me-1 me-2 me-3 me-4 me-5 me-6" {
				t.Errorf("it has %s", server.ids())
			}
		})
	}
}

func TestASlowServerIsGivenUpAtTheEnd(t *testing.T) {
	asked := make(chan struct{}, 1)
	server := newLogServer(t, func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		asked <- struct{}{}
		<-r.Context().Done()
		return false
	})
	out, err := sink.NewHTTP(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := sink.New("http", record.NewEncoder(), out)
	s.RecordDecision(rec(1))
	<-asked
	s.RecordDecision(rec(2))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(ctx); err == nil || !strings.Contains(err.Error(), "2 records were not written") {
		t.Errorf("it was closed with %v", err)
	}
}

func TestChunksAreBounded(t *testing.T) {
	server := newLogServer(t, nil)
	out, err := sink.NewHTTP(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	line, err := record.NewEncoder().AppendLine(nil, rec(1))
	if err != nil {
		t.Fatal(err)
	}
	s := sink.New("http", record.NewEncoder(), out, sink.WithBatch(3*len(line)+1, time.Hour))
	for range 10 {
		s.RecordDecision(rec(1))
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, n := range server.chunks {
		if sum += n; n > 3 {
			t.Errorf("chunks of %v", server.chunks)
		}
	}
	if sum != 10 {
		t.Errorf("%d events", sum)
	}
}

func TestURLsAreChecked(t *testing.T) {
	for _, url := range []string{"", "logs", "ftp://x/y", "https://", "https://u:p@host/logs", "http://a b"} {
		if _, err := sink.NewHTTP(url); err == nil || !strings.Contains(err.Error(), "URL of decision logs") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestHundredUploadsLeaveNothing(t *testing.T) {
	server := newLogServer(t, nil)
	posted(t, server.URL, 1)
	server.CloseClientConnections()
	before := runtime.NumGoroutine()
	for range 100 {
		posted(t, server.URL, 1)
	}
	server.CloseClientConnections()
	settles(t, before)
}
