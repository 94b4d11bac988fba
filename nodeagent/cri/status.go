// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Unavailable says whether a runtime did not answer, which another try may change.
func Unavailable(err error) bool {
	var none NoRuntimeError
	return status.Code(err) == codes.Unavailable || errors.As(err, &none)
}

// TimedOut says whether a call, or the command that it ran, took too long.
func TimedOut(err error) bool {
	return status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)
}

// Gone says whether the container of a call is not there any more.
func Gone(err error) bool { return notFound(err) }

func unimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }

func notFound(err error) bool { return status.Code(err) == codes.NotFound }
