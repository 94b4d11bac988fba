// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/regatta-sh/regatta/test/cluster/addresses"
)

// TestRequestsAreFinished stops a server, or has the client leave, while a request waits.
func TestRequestsAreFinished(t *testing.T) {
	for _, tc := range []struct {
		name    string
		leaves  bool   // the client does, and the server goes on
		answers string // what the context of the request says in the end
	}{
		{name: "the server stops", answers: "<nil>"},
		{name: "the client leaves", leaves: true, answers: "context canceled"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ports, err := addresses.AnyPorts(1)
			if err != nil {
				t.Fatal(err)
			}
			certificate := newAuthority(t).client(t, "webhook")
			server := NewGracefulServer(webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: ports[0], TLSOpts: []func(*tls.Config){func(c *tls.Config) {
				c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }
			}}}))
			came, left, said, gone := make(chan struct{}), make(chan struct{}), make(chan string, 1), make(chan struct{})
			server.Register("/validate-pod", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(came)
				<-left
				select {
				case <-r.Context().Done():
				case <-time.After(200 * time.Millisecond):
				}
				said <- fmt.Sprint(r.Context().Err())
				if tc.leaves {
					<-gone // a client reads what comes between the end of its TLS session and that of its connection
				}
			}))
			running, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- server.Start(running) }()
			asking, leave := context.WithCancel(t.Context())
			answered := make(chan error, 1)
			go func() { answered <- reach(asking, fmt.Sprintf("https://127.0.0.1:%d/validate-pod", ports[0])) }()
			<-came
			if tc.leaves {
				leave()
			} else {
				stop()
			}
			close(left)
			if got := <-said; got != tc.answers {
				t.Errorf("the context says %s, want %s", got, tc.answers)
			}
			if err := <-answered; (err != nil) != tc.leaves {
				t.Errorf("the client got: %v", err)
			}
			close(gone)
			stop()
			leave()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// reach sends a request until there is a server.
func reach(ctx context.Context, url string) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		answer, err := (&http.Client{Transport: transport}).Do(request)
		if err == nil {
			return answer.Body.Close()
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}
