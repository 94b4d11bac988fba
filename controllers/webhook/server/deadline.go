// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// The API server waits for a response as long as the parameter timeout of its request says. It ignores a later response, and
// the failure policy may then allow a request that the response refuses.
const (
	// defaultTimeout is the timeout of a webhook that sets none.
	defaultTimeout = 10 * time.Second
	// longestTimeout is the longest timeout that the API server accepts.
	longestTimeout = 30 * time.Second
	// onTheWay is the part of the time, a quarter, that is left for the transfer of requests and responses, and for a process
	// that waits for a processor.
	onTheWay = 4
)

// AnswerInTime ends the context of a webhook when the API server is about to give up, so that the webhook answers by then: a
// decision that was not made is answered by its fallback. The API server's time continues while a CPU limit stops the process.
// So a request that may have arrived while the process was stopped gets that much less time.
func AnswerInTime(hook http.Handler) http.Handler {
	processStops()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
		if err != nil || timeout <= 0 { // the request is not from an API server
			timeout = defaultTimeout
		}
		timeout = min(timeout, longestTimeout)
		begin := time.Now()
		ctx, cancel := context.WithDeadlineCause(r.Context(), begin.Add(timeout-timeout/onTheWay-processStops().waitedAtMost(begin)), errGivesUp)
		defer cancel()
		hook.ServeHTTP(w, r.WithContext(ctx))
	})
}

// errGivesUp is the cause of the end of the context.
var errGivesUp = fmt.Errorf("the API server is about to give up waiting: %w", context.DeadlineExceeded)
