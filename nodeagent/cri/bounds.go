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

// What answers of runtimes may take, in bytes. Users decide how long they are: what a command prints, the env and the
// annotations of a container, the error of a registry.
const (
	// MostOutput is what a command may print. The kubelet reads up to 16 MiB, and looks at 10 KiB of that.
	MostOutput = 64 << 10
	// MostAnswer is what the answer to another question may take, and AnswersAtOnce how many of these are read at a time.
	MostAnswer, AnswersAtOnce = 4 << 20, 4
	// longestAnswer is how long one of these may take: a runtime that hangs for one container must not keep all others waiting.
	longestAnswer = 5 * time.Second
	// mostHeaders bounds the text of an error.
	mostHeaders = 64 << 10
	// window and connectionWindow are what is received before somebody reads it. Without them they grow to 16 MiB.
	window, connectionWindow = 64 << 10, 1 << 20
)

// reading has room for the answers that are read at a time. It is that of the process: there may be several runtimes.
var reading = make(chan struct{}, AnswersAtOnce)

// boundAnswer bounds what an answer takes. Calls that wait for a container or a registry have short answers, and may be many;
// of the others, which are answered at once, only a few are asked at a time.
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
