// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// What is sent over the socket of a sidecar, a byte each.
const (
	begin = 'b' // by the hook: take over, and answer done
	yield = 'y' // by the next sidecar: send the listener, stop when it answers done
	done  = 'd'
)

// patience is how long one process waits for another.
const patience = 10 * time.Second

// sidecar serves its version over HTTP once its hook has asked it to.
type sidecar struct {
	version, own, other, address string

	listener net.Listener
	server   *http.Server
}

// run takes commands until the context ends.
func (s *sidecar) run(ctx context.Context) error {
	commands, err := net.Listen("unix", s.own)
	if err != nil {
		return fmt.Errorf("listening for commands: %w", err)
	}
	defer context.AfterFunc(ctx, func() { commands.Close() })()
	for {
		c, err := commands.Accept()
		if ctx.Err() != nil {
			return s.close()
		}
		if err != nil {
			return errors.Join(fmt.Errorf("waiting for commands: %w", err), s.close())
		}
		if err := s.obey(c.(*net.UnixConn)); err != nil {
			fmt.Fprintln(os.Stderr, "handover:", err)
		}
	}
}

func (s *sidecar) close() error {
	if s.server == nil {
		return nil
	}
	return s.server.Close()
}

// obey carries one command out.
func (s *sidecar) obey(c *net.UnixConn) error {
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("setting a deadline: %w", err)
	}
	command, err := read(c)
	if err != nil {
		return fmt.Errorf("reading a command: %w", err)
	}
	switch {
	case command == begin && s.server == nil:
		if s.listener, err = s.take(); err != nil {
			return err
		}
		s.server = &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "This is version(%s) sidecar", s.version)
		})}
		go s.server.Serve(s.listener) //nolint:errcheck // it ends when it is shut down
		_, err = c.Write([]byte{done})
	case command == begin:
		_, err = c.Write([]byte{done})
	case command == yield && s.server != nil:
		err = s.give(c)
	default:
		err = fmt.Errorf("there is nothing to do for %q", command)
	}
	if err != nil {
		return fmt.Errorf("carrying out %q: %w", command, err)
	}
	return nil
}

// give sends the listener, and stops to serve when it has arrived. The other side sees the
// connection end when each request that was accepted here has its answer.
func (s *sidecar) give(c *net.UnixConn) error {
	raw, err := s.listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		return fmt.Errorf("finding the listener: %w", err)
	}
	var sent error
	if err := raw.Control(func(fd uintptr) {
		_, _, sent = c.WriteMsgUnix([]byte{done}, syscall.UnixRights(int(fd)), nil)
	}); err != nil || sent != nil {
		return fmt.Errorf("sending the listener: %w", errors.Join(err, sent))
	}
	if _, err := read(c); err != nil {
		return fmt.Errorf("waiting until the listener has arrived: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = s.server.Shutdown(ctx)
	s.server = nil
	return err
}

// take gets the listener of the other sidecar, or makes one if there is no other.
func (s *sidecar) take() (net.Listener, error) {
	if s.other == s.own { // upgraded cold: neither has a version
		return net.Listen("tcp", s.address)
	}
	conn, err := net.Dial("unix", s.other)
	if err != nil {
		return net.Listen("tcp", s.address)
	}
	c := conn.(*net.UnixConn)
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, fmt.Errorf("setting a deadline: %w", err)
	}
	if _, err := c.Write([]byte{yield}); err != nil {
		return nil, fmt.Errorf("asking for the listener: %w", err)
	}
	text, rights := make([]byte, 1), make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(text, rights)
	if err != nil {
		return nil, fmt.Errorf("waiting for the listener: %w", err)
	}
	listener, err := listenerIn(rights[:n])
	if err != nil {
		return nil, err
	}
	if _, err := c.Write([]byte{done}); err != nil {
		return nil, errors.Join(fmt.Errorf("saying that the listener has arrived: %w", err), listener.Close())
	}
	if _, err := read(c); !errors.Is(err, io.EOF) { // it has stopped, one way or another
		return nil, errors.Join(fmt.Errorf("waiting for the other sidecar to stop: %w", err), listener.Close())
	}
	return listener, nil
}

// listenerIn is the one that a message brought.
func listenerIn(rights []byte) (net.Listener, error) {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("reading the message with the listener: %d parts: %w", len(messages), err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("reading the message with the listener: %d files: %w", len(fds), err)
	}
	file := os.NewFile(uintptr(fds[0]), "listener")
	defer file.Close()
	return net.FileListener(file)
}

func read(c net.Conn) (byte, error) {
	text := make([]byte, 1)
	_, err := io.ReadFull(c, text)
	return text[0], err
}
