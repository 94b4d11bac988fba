// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/webhook/server"
)

func TestAWebhookEndsBeforeTheAPIServerGivesUp(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"?timeout=3s": 2250 * time.Millisecond, "?timeout=400ms": 300 * time.Millisecond, "?timeout=30s": 22500 * time.Millisecond,
		"": 7500 * time.Millisecond, "?timeout=x": 7500 * time.Millisecond, "?timeout=-1s": 7500 * time.Millisecond, "?timeout=1000h": 22500 * time.Millisecond,
	} {
		left := time.Duration(0)
		hook := server.AnswerInTime(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			deadline, _ := r.Context().Deadline()
			left = time.Until(deadline)
		}))
		ok := false
		for range 10 { // of a request that comes right behind a stop of this process less is left, see stops
			start := time.Now()
			hook.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/validate"+query, nil))
			if took := time.Since(start); left <= want && left >= want-took-time.Second/2 {
				ok = true
				break
			}
			time.Sleep(time.Second)
		}
		if !ok {
			t.Errorf("%q: the webhook has %s, want %s", query, left, want)
		}
	}
}
