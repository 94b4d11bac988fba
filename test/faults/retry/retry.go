// SPDX-License-Identifier: Apache-2.0

// Package retry says which requests are sent again while managers are killed, and waits before they are.
package retry

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Again says whether a request may succeed when it is sent again: no manager answered, or none could decide in time, or another client
// was faster. A manager whose pod was just deleted by force may still answer, but the API server no longer accepts its token: Unauthorized.
func Again(err error) bool {
	for _, text := range []string{"failed calling webhook", "No policy decided", "; try again", ": Unauthorized", "deadline exceeded", "connection refused", "connection reset", "EOF"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// Pause waits; the error is why it could not.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
