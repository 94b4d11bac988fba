// SPDX-License-Identifier: Apache-2.0

package trap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// largest is what the kubelet takes too.
const largest = 16 << 20

// Runtime passes the calls of CRI on, whatever they are: messages are not decoded.
type Runtime struct {
	trap   *Trap
	conn   *grpc.ClientConn
	server *grpc.Server
}

// ServeRuntime listens on a socket, and passes calls on to the runtime that dial connects to.
func ServeRuntime(ctx context.Context, t *Trap, socket string, dial func(context.Context) (net.Conn, error)) (*Runtime, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing a socket of before: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening for calls of the runtime: %w", err)
	}
	conn, err := grpc.NewClient("passthrough:///runtime",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{}), grpc.MaxCallRecvMsgSize(largest)))
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("connecting to the runtime: %w", err)
	}
	r := &Runtime{trap: t, conn: conn}
	r.server = grpc.NewServer(grpc.ForceServerCodec(codec{}), grpc.UnknownServiceHandler(r.pass), grpc.MaxRecvMsgSize(largest))
	go func() { _ = r.server.Serve(listener) }() // it ends with Close
	return r, nil
}

// Close ends all calls.
func (r *Runtime) Close() error {
	r.server.Stop()
	return r.conn.Close()
}

// pass is one call: all that an agent makes have one message each way.
func (r *Runtime) pass(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	in, out := &message{}, &message{}
	if err := stream.RecvMsg(in); err != nil {
		return err
	}
	var err error
	if r.trap.around(path.Base(method), func() { err = r.conn.Invoke(stream.Context(), method, in, out) }) {
		return status.Error(codes.Unavailable, "the agent was killed")
	}
	if err != nil {
		return err
	}
	return stream.SendMsg(out)
}

// message is as it is on the wire.
type message struct{ raw []byte }

// codec leaves messages as they are.
type codec struct{}

// Marshal implements encoding.Codec.
func (codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(*message)
	if !ok {
		return nil, fmt.Errorf("encoding a %T, want a message", v)
	}
	return m.raw, nil
}

// Unmarshal implements encoding.Codec.
func (codec) Unmarshal(data []byte, v any) error {
	m, ok := v.(*message)
	if !ok {
		return fmt.Errorf("decoding into a %T, want a message", v)
	}
	m.raw = slices.Clone(data)
	return nil
}

// Name implements encoding.Codec. What is on the wire is of that format.
func (codec) Name() string { return "proto" }
