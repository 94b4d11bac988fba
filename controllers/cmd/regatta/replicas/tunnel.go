// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnel is a port-forward to a pod. Unlike kubectl's, it opens no port on this
// machine, which every local process could use. It takes the streams of
// k8s.io/streaming: client-go 0.37 does not recognize the failure to fall back
// on through those of apimachinery.
type tunnel struct {
	sockets   httpstream.Dialer
	spdy      httpstream.Dialer
	namespace string
	name      string
	port      string

	mu   sync.Mutex
	open httpstream.Connection
	next int
}

// newTunnel prepares a tunnel.
func newTunnel(client kubernetes.Interface, config *rest.Config, pod *corev1.Pod) (*tunnel, error) {
	u := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	round, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing a port-forward: %w", err)
	}
	sockets, err := portforward.NewSPDYOverWebsocketDialerForStreaming(u, config)
	if err != nil {
		return nil, fmt.Errorf("preparing a port-forward: %w", err)
	}
	return &tunnel{
		sockets: sockets, spdy: spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: round}, http.MethodPost, u),
		namespace: pod.Namespace, name: pod.Name, port: strconv.Itoa(int(portOf(pod))),
	}, nil
}

// upgrade opens the tunnel over WebSockets, which pass through any proxy, and
// over SPDY where the API server or a proxy has none. Older API servers ask for
// other permissions for the two, so a refusal of the first is not the last word.
func (t *tunnel) upgrade() (httpstream.Connection, error) {
	conn, _, err := t.sockets.Dial(portforward.PortForwardProtocolV1Name)
	var upgrade *httpstream.UpgradeFailureError
	if err == nil || (!errors.As(err, &upgrade) && !httpstream.IsHTTPSProxyError(err)) {
		return conn, err
	}
	conn, _, fallback := t.spdy.Dial(portforward.PortForwardProtocolV1Name)
	if fallback == nil {
		return conn, nil
	}
	if upgrade != nil && apierrors.IsForbidden(upgrade.Cause) {
		return nil, upgrade.Cause // the other tells it in words only
	}
	return nil, fallback
}

func (t *tunnel) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open != nil {
		_ = t.open.Close()
		t.open = nil
	}
}

// dial opens a connection to the pod, whatever the address.
func (t *tunnel) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() { // what is below takes no context
		conn, err := t.stream()
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.conn != nil {
				_ = r.conn.Close()
			}
		}()
		return nil, fmt.Errorf("opening a port-forward: %w", context.Cause(ctx))
	}
}

// connection is the one that is open, or a new one.
func (t *tunnel) connection() (httpstream.Connection, int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	if t.open != nil {
		select {
		case <-t.open.CloseChan():
		default:
			return t.open, t.next, nil
		}
	}
	open, err := t.upgrade()
	if err != nil {
		return nil, 0, forbidden(t.namespace, fmt.Errorf("opening a port-forward: %w", err))
	}
	t.open = open
	return open, t.next, nil
}

// stream opens the two streams of one connection: of data, and of the error
// that the far end may have to tell.
func (t *tunnel) stream() (net.Conn, error) {
	open, id, err := t.connection()
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	headers.Set(corev1.PortHeader, t.port)
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(id))
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failure, err := open.CreateStream(headers)
	if err != nil {
		t.close()
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	_ = failure.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := open.CreateStream(headers)
	if err != nil {
		t.close()
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	c := &conn{Stream: data, tunnel: t, open: open, failure: failure, told: make(chan struct{})}
	go c.listen()
	return c, nil
}

// conn is a stream as a connection. Deadlines do nothing: closing it ends what
// waits, and that is what HTTP does when a request has taken too long.
type conn struct {
	httpstream.Stream
	tunnel  *tunnel
	open    httpstream.Connection
	failure httpstream.Stream
	told    chan struct{}
	message string // once told is closed
}

func (c *conn) listen() {
	defer close(c.told)
	text, _ := io.ReadAll(io.LimitReader(c.failure, 4096)) // closed without a word is fine
	c.message = strings.TrimSpace(string(text))
}

// Read says what the far end says when the stream ends.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Stream.Read(p)
	if err == nil || n > 0 {
		return n, err
	}
	select {
	case <-c.told:
	case <-time.After(100 * time.Millisecond): // it comes with the end or not at all
		return 0, err
	}
	if c.message != "" {
		return 0, fmt.Errorf("forwarding to port %s of pod %s: %s", c.tunnel.port, c.tunnel.name, c.message)
	}
	return 0, err
}

// Close ends both streams at once. What was sent and not read is of no use.
func (c *conn) Close() error {
	err := c.Stream.Reset()
	_ = c.failure.Reset()
	c.open.RemoveStreams(c.Stream, c.failure)
	return err
}

func (c *conn) LocalAddr() net.Addr              { return address(c.tunnel.name) }
func (c *conn) RemoteAddr() net.Addr             { return address(c.tunnel.name) }
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// address is the name of a pod.
type address string

func (address) Network() string  { return "portforward" }
func (a address) String() string { return string(a) }
