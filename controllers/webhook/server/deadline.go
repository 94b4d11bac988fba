// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// The API server waits for an answer as long as the parameter timeout of its request says. An answer that comes later counts as
// none, and the failure policy lets pass what the answer may have refused.
const (
	// defaultTimeout is that of a webhook that names none.
	defaultTimeout = 10 * time.Second
	// longestTimeout is the longest that the API server takes.
	longestTimeout = 30 * time.Second
	// onTheWay is the part of the time that requests and answers may take on their way, and in a process that has no processor.
	onTheWay = 4
)

// AnswerInTime ends the context of a webhook when the API server is about to give up, so that the webhook answers by then: a
// decision that was not made is refused by its fallback. The time of a decision goes on while a CPU limit stops the process, and
// that of the request does not wait for it. A request that may have come while the process was stopped has that much less.
func AnswerInTime(hook http.Handler) http.Handler {
	processStops()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
		if err != nil || timeout <= 0 { // no API server sent it
			timeout = defaultTimeout
		}
		timeout = min(timeout, longestTimeout)
		begin := time.Now()
		ctx, cancel := context.WithDeadlineCause(r.Context(), begin.Add(timeout-timeout/onTheWay-processStops().waitedAtMost(begin)), errGivesUp)
		defer cancel()
		hook.ServeHTTP(w, r.WithContext(ctx))
	})
}

// errGivesUp is why a decision is not waited for any longer.
var errGivesUp = fmt.Errorf("the API server is about to give up waiting: %w", context.DeadlineExceeded)
