// SPDX-License-Identifier: Apache-2.0

package protection

import "net/http"

// ServeWhenReady answers 503 until something is ready. An AdmissionReview that denies a request is a
// refusal, whatever its code. Only a response that is no AdmissionReview leaves the request to the
// failure policy of the webhook.
func ServeWhenReady(ready <-chan struct{}, then http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-ready:
			then.ServeHTTP(w, r)
		default:
			http.Error(w, "the policies are not loaded yet; try again", http.StatusServiceUnavailable)
		}
	})
}
