// SPDX-License-Identifier: Apache-2.0

// Package delay makes the way to a server longer: a TCP proxy that hands over
// every byte a fixed time after it came, as a distant network does. Requests
// beside each other are all delayed by the same time, none waits for another.
package delay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
)

// A Proxy takes connections at Listen and leads them to Target, both HOST:PORT.
type Proxy struct {
	Listen, Target string
	// RoundTrip is what an answer takes longer: half of it each way.
	RoundTrip time.Duration
	Log       *log.Logger
}

// Serve serves until ctx ends. It returns an error if it cannot listen.
func (p Proxy) Serve(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.Listen)
	if err != nil {
		return fmt.Errorf("listening for delayed requests: %w", err)
	}
	return p.serve(ctx, listener)
}

func (p Proxy) serve(ctx context.Context, listener net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	for {
		from, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("taking a connection: %w", err)
		}
		go func() {
			if err := p.lead(ctx, from); err != nil && ctx.Err() == nil {
				p.Log.Printf("a delayed connection of %s: %v", from.RemoteAddr(), err)
			}
		}()
	}
}

// lead carries a connection to the target and back until both sides are done.
func (p Proxy) lead(ctx context.Context, from net.Conn) error {
	defer from.Close()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.Target)
	if err != nil {
		return err
	}
	defer to.Close()
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() { _, _ = from.Close(), to.Close() })()
	group.Go(func() error { return carry(to, from, p.RoundTrip/2) })
	group.Go(func() error { return carry(from, to, p.RoundTrip/2) })
	return group.Wait()
}

// chunk is what was read at once, and when it is to arrive.
type chunk struct {
	data []byte
	due  time.Time
}

// underWay is how many chunks a direction may hold: enough not to be a limit of
// its own, few enough to bound the memory.
const underWay = 4096

// carry copies from one connection to the other, and ends the writing side when
// the reading side has ended.
func carry(to, from net.Conn, later time.Duration) error {
	line, stop := make(chan chunk, underWay), make(chan struct{})
	defer close(stop)
	read := make(chan error, 1)
	go func() {
		defer close(line)
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				select {
				case line <- chunk{append([]byte(nil), buffer[:n]...), time.Now().Add(later)}:
				case <-stop:
					return
				}
			}
			if err != nil {
				read <- err
				return
			}
		}
	}()
	for c := range line {
		time.Sleep(time.Until(c.due))
		if _, err := to.Write(c.data); err != nil {
			return err
		}
	}
	if err := <-read; !errors.Is(err, io.EOF) {
		return err
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
