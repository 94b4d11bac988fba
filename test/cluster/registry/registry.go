// SPDX-License-Identifier: Apache-2.0

// Package registry serves images to the nodes of a local cluster: those that
// were pushed, and stand-ins for all others.
package registry

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A StandIn makes an image for a name that no client pushed.
type StandIn interface {
	ImageID(repository, tag string) (v1.Image, error)
}

// A Registry is an OCI registry that keeps what is pushed in a directory.
type Registry struct {
	inner   http.Handler
	blobs   ggcr.BlobHandler
	journal *journal
	log     *log.Logger
	standIn StandIn // nil if there is nothing to make them of

	// making is held while a stand-in is made: the nodes of a DaemonSet all
	// ask for the same one at once.
	making sync.Mutex
}

// Open returns the registry kept in dir. standIn may be nil.
func Open(dir string, standIn StandIn, logger *log.Logger) (*Registry, error) {
	directory := filepath.Join(dir, "blobs")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, fmt.Errorf("making the registry directory: %w", err)
	}
	blobs := ggcr.NewDiskBlobHandler(directory)
	registry := &Registry{
		inner:   ggcr.New(ggcr.WithBlobHandler(blobs), ggcr.WithReferrersSupport(true), ggcr.Logger(logger)),
		blobs:   blobs,
		log:     logger,
		standIn: standIn,
	}
	var err error
	registry.journal, err = openJournal(filepath.Join(dir, "manifests.jsonl"), func(one entry) error {
		if status := registry.replay(one); status >= 300 {
			return fmt.Errorf("manifest %s:%s answered %d", one.Repository, one.Reference, status)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return registry, nil
}

func (r *Registry) replay(one entry) int {
	request := httptest.NewRequest(one.Method, "/v2/"+one.Repository+"/manifests/"+one.Reference, bytes.NewReader(one.Body))
	request.Header.Set("Content-Type", one.ContentType)
	recorder := httptest.NewRecorder()
	r.inner.ServeHTTP(recorder, request)
	return recorder.Code
}

// ServeHTTP answers the distribution API.
func (r *Registry) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	// Docker Hub's official images are asked for as library/NAME, and pushed
	// here as NAME.
	request.URL.Path = strings.Replace(request.URL.Path, "/v2/library/", "/v2/", 1)
	repository, reference, ok := manifestPath(request.URL.Path)
	switch {
	case absent(request):
		notFound(response)
	case !ok:
		r.inner.ServeHTTP(response, request)
	case request.Method == http.MethodGet || request.Method == http.MethodHead:
		if err := r.prepare(request, repository, reference); err != nil {
			r.log.Print(err)
			http.Error(response, err.Error(), http.StatusInternalServerError)
			return
		}
		r.inner.ServeHTTP(response, request)
	default:
		r.change(response, request, repository, reference)
	}
}

// change passes a push or a deletion on, and keeps it if it was accepted.
func (r *Registry) change(response http.ResponseWriter, request *http.Request, repository, reference string) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	recorder := httptest.NewRecorder()
	r.inner.ServeHTTP(recorder, request)
	if recorder.Code < 300 {
		err := r.journal.append(entry{
			Method: request.Method, Repository: repository, Reference: reference,
			ContentType: request.Header.Get("Content-Type"), Body: body,
		})
		if err != nil {
			http.Error(response, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	for key, values := range recorder.Header() {
		response.Header()[key] = values
	}
	response.WriteHeader(recorder.Code)
	_, _ = response.Write(recorder.Body.Bytes())
}

// manifestPath splits /v2/REPOSITORY/manifests/REFERENCE.
func manifestPath(path string) (repository, reference string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v2/")
	if !ok {
		return "", "", false
	}
	repository, reference, ok = strings.Cut(rest, "/manifests/")
	return repository, reference, ok && repository != "" && reference != ""
}

// Close releases the files of the registry.
func (r *Registry) Close() error {
	if err := r.journal.close(); err != nil {
		return fmt.Errorf("closing the manifests: %w", err)
	}
	return nil
}
