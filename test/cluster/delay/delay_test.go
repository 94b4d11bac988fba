// SPDX-License-Identifier: Apache-2.0

package delay

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestEachAnswerIsLate holds the least that an answer takes, never the most, which is the
// machine's; and that requests beside each other do not add up.
func TestEachAnswerIsLate(t *testing.T) {
	const roundTrip, requests = 200 * time.Millisecond, 40
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	p := Proxy{Target: server.Listener.Addr().String(), RoundTrip: roundTrip, Log: log.New(t.Output(), "", 0)}
	go func() { done <- p.serve(ctx, listener) }()

	started := time.Now()
	var group errgroup.Group
	for range requests {
		group.Go(func() error {
			sent := time.Now()
			text := strings.Repeat("regatta", 50_000) // more than one chunk
			resp, err := http.Post("http://"+listener.Addr().String(), "text/plain", strings.NewReader(text))
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if took := time.Since(sent); took < roundTrip {
				t.Errorf("an answer took %v, want at least %v", took, roundTrip)
			}
			if string(got) != text {
				t.Errorf("got %d bytes, want the %d that were sent", len(got), len(text))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(started); took > requests*roundTrip/2 {
		t.Errorf("%d requests beside each other took %v: they wait for one another", requests, took)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
