// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// IsUnavailable reports whether a runtime did not answer, so that a retry may succeed.
func IsUnavailable(err error) bool {
	var none NoRuntimeError
	return status.Code(err) == codes.Unavailable || errors.As(err, &none)
}

// TimedOut reports whether a call, or the command that it ran, took too long.
func TimedOut(err error) bool {
	return status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)
}

// IsGone reports whether the container of a call does not exist any more.
func IsGone(err error) bool { return notFound(err) }

func isUnimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }

func notFound(err error) bool { return status.Code(err) == codes.NotFound }
