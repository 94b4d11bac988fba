// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Bounds of the answers of runtimes, in bytes. Users determine their length: the output of a command, the env and the
// annotations of a container, the error of a registry.
const (
	// MostOutput is how much a command may print. The kubelet reads up to 16 MiB, and uses 10 KiB of that.
	MostOutput = 64 << 10
	// MostAnswer is how long any other answer may be, and AnswersAtOnce how many of these are read at once.
	MostAnswer, AnswersAtOnce = 4 << 20, 4
	// longestAnswer is how long one of these may take: a runtime that hangs for one container must not block all others.
	longestAnswer = 5 * time.Second
	// mostHeaders bounds the text of an error.
	mostHeaders = 64 << 10
	// window and connectionWindow are how many bytes are received before they are read. Without these bounds they
	// grow to 16 MiB.
	window, connectionWindow = 64 << 10, 1 << 20
)

// reading has room for the answers that are read at once. All runtimes of the process share it.
var reading = make(chan struct{}, AnswersAtOnce)

// boundAnswer bounds the size of an answer. Calls that wait for a container or a registry have short answers, and may be
// many. Only a few other calls, which are answered at once, are made at the same time.
func boundAnswer(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	switch method {
	case runtimev1.RuntimeService_ExecSync_FullMethodName, runtimev1.RuntimeService_StopContainer_FullMethodName, runtimev1.ImageService_PullImage_FullMethodName:
		return invoke(ctx, method, request, answer, conn, append(opts, grpc.MaxCallRecvMsgSize(MostOutput))...)
	}
	select {
	case reading <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting for other answers of the runtime: %w", ctx.Err())
	}
	defer func() { <-reading }()
	ctx, cancel := context.WithTimeout(ctx, longestAnswer)
	defer cancel()
	return invoke(ctx, method, request, answer, conn, append(opts, grpc.MaxCallRecvMsgSize(MostAnswer))...)
}

// PrintedTooMuch reports whether a command printed more than MostOutput.
func PrintedTooMuch(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "message larger than max")
}
