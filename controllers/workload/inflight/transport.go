// SPDX-License-Identifier: Apache-2.0

package inflight

import (
	"net/http"
	"strings"
)

// WrapTransport measures the writes of pods that go through another transport.
func (w *Window) WrapTransport(next http.RoundTripper) http.RoundTripper { return &watcher{w, next} }

type watcher struct {
	window *Window
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *watcher) RoundTrip(request *http.Request) (*http.Response, error) {
	sort := sortOf(request)
	if sort == "" {
		return t.next.RoundTrip(request)
	}
	started := t.window.now()
	response, err := t.next.RoundTrip(request)
	switch {
	case err != nil: // there was no answer, or the caller cancelled the request
	case response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusGatewayTimeout:
		t.window.RecordAnswer(sort, 0, true)
	default:
		t.window.RecordAnswer(sort, t.window.now().Sub(started), false)
	}
	return response, err
}

// WrappedRoundTripper returns the wrapped transport, for the tools of client-go.
func (t *watcher) WrappedRoundTripper() http.RoundTripper { return t.next }

// sortOf is the sort of a write of a pod, "" for any other request: the latency of reads and
// watches does not show the latency of writes.
func sortOf(request *http.Request) string {
	if request.Method == http.MethodGet {
		return ""
	}
	_, path, found := strings.Cut(request.URL.Path, "/api/v1/namespaces/")
	parts := strings.Split(path, "/") // namespace, pods, name, subresource
	if !found || len(parts) < 2 || parts[1] != "pods" {
		return ""
	}
	sort := request.Method + " pods"
	if len(parts) > 3 {
		if parts[3] == "eviction" { // a budget refuses it with the code that otherwise means that the server is busy
			return ""
		}
		sort += "/" + parts[3]
	}
	return sort
}
