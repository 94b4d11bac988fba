// SPDX-License-Identifier: Apache-2.0

// Package hub is a registry whose images are hard to get: it answers with errors, not at all,
// or with a part, for a while or for good.
package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/regatta-sh/regatta/test/cluster/local"
)

// Host is what images of the registry begin with. No real registry has a name that ends so
// (RFC 2606).
const Host = "faulty.invalid"

// Faults that images have, by the first part of their names.
const (
	Hang     = "hang"
	Truncate = "truncated"
)

// Faults are all faults; the others are the codes that the registry answers with.
func Faults() []string { return []string{"401", "429", "500", Hang, Truncate} }

// Awhile is how long an image for a while is hard to get, from when it is asked for first.
const Awhile = 3 * time.Second

// Hub is the registry.
type Hub struct {
	inner  http.Handler
	server *http.Server
	now    func() time.Time

	mu    sync.Mutex
	since map[string]time.Time // the image was asked for first
}

// Image is the name of one with a fault, for a while or for good.
func Image(fault string, awhile bool) string {
	if awhile {
		return Host + "/" + fault + "/awhile:v1"
	}
	return Host + "/" + fault + "/good:v1"
}

// Serve listens where real nodes reach it, and has a node ask it for images of Host.
func Serve(ctx context.Context, cluster *local.Cluster, node string) (*Hub, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(cluster.State.APIServerHost(), "0"))
	if err != nil {
		return nil, fmt.Errorf("listening for nodes that pull: %w", err)
	}
	h, err := newHub(ctx)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: quiet()}
	go func() { _ = h.server.Serve(listener) }() // it ends with Close
	folder := cluster.State.Path("nodes", node, "certs.d", Host)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("telling %s of the registry: %w", node, err), h.Close())
	}
	address := "http://" + listener.Addr().String()
	text := fmt.Sprintf("server = %q\n\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", address, address)
	if err := os.WriteFile(filepath.Join(folder, "hosts.toml"), []byte(text), 0o644); err != nil {
		return nil, errors.Join(fmt.Errorf("telling %s of the registry: %w", node, err), h.Close())
	}
	return h, nil
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// newHub makes a Hub with its images.
func newHub(ctx context.Context) (*Hub, error) {
	h := &Hub{inner: registry.New(registry.Logger(quiet())), now: time.Now, since: map[string]time.Time{}}
	return h, h.fill(ctx)
}

// fill makes an image for each fault, with a layer of its own, past the faults.
func (h *Hub) fill(ctx context.Context) error {
	push := httptest.NewServer(h.inner)
	defer push.Close()
	for _, fault := range Faults() {
		for _, awhile := range []bool{true, false} {
			image, err := random.Image(1<<18, 1)
			if err != nil {
				return fmt.Errorf("making an image: %w", err)
			}
			config, err := image.ConfigFile()
			if err != nil {
				return fmt.Errorf("making an image: %w", err)
			}
			config.OS, config.Architecture = "linux", runtime.GOARCH
			if image, err = mutate.ConfigFile(image, config); err != nil {
				return fmt.Errorf("making an image: %w", err)
			}
			tag, err := name.NewTag(strings.Replace(Image(fault, awhile), Host, strings.TrimPrefix(push.URL, "http://"), 1), name.Insecure)
			if err != nil {
				return fmt.Errorf("naming an image: %w", err)
			}
			if err := remote.Write(tag, image, remote.WithContext(ctx)); err != nil {
				return fmt.Errorf("pushing an image: %w", err)
			}
		}
	}
	return nil
}

// Close ends it.
func (h *Hub) Close() error { return h.server.Close() }

// ServeHTTP implements http.Handler.
func (h *Hub) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	parts := strings.Split(strings.TrimPrefix(q.URL.Path, "/v2/"), "/")
	if len(parts) < 4 || !h.faulty(parts[0], parts[1]) {
		h.inner.ServeHTTP(w, q)
		return
	}
	switch fault := parts[0]; fault {
	case Hang:
		<-q.Context().Done()
	case Truncate:
		if parts[2] != "blobs" || q.Method != http.MethodGet {
			h.inner.ServeHTTP(w, q)
			return
		}
		h.cut(w, q)
	default:
		code, err := strconv.Atoi(fault)
		if err != nil {
			code = http.StatusNotFound
		}
		if code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="faulty"`)
		}
		http.Error(w, http.StatusText(code), code)
	}
}

// faulty says whether an image is hard to get at the moment.
func (h *Hub) faulty(fault, span string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	image := fault + "/" + span
	if h.since[image].IsZero() {
		h.since[image] = h.now()
	}
	return span != "awhile" || h.now().Sub(h.since[image]) < Awhile
}

// cut sends the first half of a blob, and closes the connection.
func (h *Hub) cut(w http.ResponseWriter, q *http.Request) {
	whole := httptest.NewRecorder()
	h.inner.ServeHTTP(whole, q)
	body := whole.Body.Bytes()
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(whole.Code)
	_, _ = w.Write(body[:len(body)/2])        // the node may be gone
	_ = http.NewResponseController(w).Flush() // as well
	panic(http.ErrAbortHandler)
}
