// SPDX-License-Identifier: Apache-2.0

// Package cri is a client of the container runtimes of a node, by the Container Runtime Interface,
// version 1, over gRPC.
package cri

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// callTimeout is how long a call that does not wait for a container or a registry may take.
	callTimeout = 30 * time.Second
	// mostReconnect is the longest wait before a lost connection is made again. A runtime
	// that restarts is back within seconds.
	mostReconnect = 2 * time.Second
)

// Runtime is one container runtime of the node. The next call reconnects after a lost connection.
type Runtime struct {
	// Name is the name that the runtime reports, such as containerd or cri-o: the scheme of the IDs of its
	// containers.
	Name string
	// Version is the release of the runtime.
	Version string
	// Endpoint is the endpoint where the runtime answered.
	Endpoint string
	// ImagesMissing says why the runtime serves no images; empty if it does.
	ImagesMissing string

	conn     *grpc.ClientConn
	runtimes runtimev1.RuntimeServiceClient
	images   runtimev1.ImageServiceClient
}

// Connect connects to the runtime at an endpoint.
func Connect(ctx context.Context, endpoint string) (*Runtime, error) {
	conn, err := grpc.NewClient("passthrough:///"+endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dialEndpoint(ctx, address) }),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: mostReconnect},
			MinConnectTimeout: callTimeout,
		}),
		grpc.WithUnaryInterceptor(boundAnswer),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(connectionWindow), grpc.WithMaxHeaderListSize(mostHeaders))
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", endpoint, err)
	}
	r := &Runtime{
		Endpoint: endpoint, conn: conn,
		runtimes: runtimev1.NewRuntimeServiceClient(conn), images: runtimev1.NewImageServiceClient(conn),
	}
	if err := r.detectFeatures(ctx); err != nil {
		_ = conn.Close() // the error of the call says more
		return nil, err
	}
	return r, nil
}

// detectFeatures asks for the name and the features of the runtime. A runtime without images can still
// restart containers.
func (r *Runtime) detectFeatures(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	said, err := r.runtimes.Version(ctx, &runtimev1.VersionRequest{Version: "v1"})
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w", r.Endpoint, err)
	}
	r.Name, r.Version = said.GetRuntimeName(), said.GetRuntimeVersion()
	if _, err := r.images.ImageFsInfo(ctx, &runtimev1.ImageFsInfoRequest{}); err != nil && isUnimplemented(err) {
		r.ImagesMissing = fmt.Sprintf("%s %s at %s serves no images by CRI v1", r.Name, r.Version, r.Endpoint)
	}
	return nil
}

// Close ends the connection.
func (r *Runtime) Close() error {
	if err := r.conn.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", r.Endpoint, err)
	}
	return nil
}
