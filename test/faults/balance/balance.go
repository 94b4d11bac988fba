// SPDX-License-Identifier: Apache-2.0

// Package balance is a Service for managers that run beside a cluster: one
// address that leads to any of several, and never to one that does not listen.
package balance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Balancer passes connections on.
type Balancer struct {
	listener net.Listener
	backends []string
	next     atomic.Uint64
	open     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	done  bool
}

// Listen listens on a port of this machine for connections to the backends.
func Listen(ctx context.Context, backends ...string) (*Balancer, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for webhooks: %w", err)
	}
	b := &Balancer{listener: l, backends: backends, conns: map[net.Conn]bool{}}
	b.open.Go(b.accept)
	return b, nil
}

// Port is where it listens.
func (b *Balancer) Port() int { return b.listener.Addr().(*net.TCPAddr).Port }

// Close ends all connections.
func (b *Balancer) Close() error {
	err := b.listener.Close()
	b.mu.Lock()
	b.done = true
	for c := range b.conns {
		c.Close()
	}
	b.mu.Unlock()
	b.open.Wait()
	return err
}

func (b *Balancer) accept() {
	for {
		c, err := b.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			return
		}
		b.open.Go(func() { b.pass(c) })
	}
}

// pass copies both ways until either side ends: a backend that is killed ends
// the connection, as it would with a Service.
func (b *Balancer) pass(c net.Conn) {
	defer b.forget(c)
	if !b.keep(c) {
		return
	}
	to, err := b.dial()
	if err != nil {
		return // who called sees the connection end
	}
	defer b.forget(to)
	if !b.keep(to) {
		return
	}
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{to, c}, {c, to}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // either side may end it at any time
			ended <- struct{}{}
		}()
	}
	<-ended
}

func (b *Balancer) dial() (net.Conn, error) {
	var last error
	first := b.next.Add(1)
	for i := range uint64(len(b.backends)) {
		c, err := net.DialTimeout("tcp", b.backends[(first+i)%uint64(len(b.backends))], time.Second)
		if err == nil {
			return c, nil
		}
		last = err
	}
	return nil, last
}

func (b *Balancer) keep(c net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns[c] = true
	return !b.done
}

func (b *Balancer) forget(c net.Conn) {
	c.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, c)
}
