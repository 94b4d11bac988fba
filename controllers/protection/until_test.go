// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestUntil(t *testing.T) {
	ready := make(chan struct{})
	h := ServeWhenReady(ready, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	ask := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
		return w.Code
	}
	if got := ask(); got != http.StatusServiceUnavailable {
		t.Errorf("before: %d", got)
	}
	close(ready)
	if got := ask(); got != http.StatusTeapot {
		t.Errorf("after: %d", got)
	}
}
