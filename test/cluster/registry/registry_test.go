// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// labelled makes images that only differ by a label.
type labelled struct{}

func (labelled) ImageID(repository, tag string) (v1.Image, error) {
	return mutate.Config(empty.Image, v1.Config{Labels: map[string]string{"for": repository + ":" + tag}})
}

func serve(t *testing.T, dir string, standIn StandIn) string {
	t.Helper()
	handler, err := Open(dir, standIn, log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Close()
		if err := handler.Close(); err != nil {
			t.Error(err)
		}
	})
	return strings.TrimPrefix(server.URL, "http://")
}

func pull(t *testing.T, address, image string) (v1.Image, error) {
	t.Helper()
	reference, err := name.ParseReference(address+"/"+image, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return remote.Image(reference)
}

func label(t *testing.T, image v1.Image) string {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return config.Config.Labels["for"]
}

func TestEveryNameHasAStandIn(t *testing.T) {
	address := serve(t, t.TempDir(), labelled{})
	for image, want := range map[string]string{
		"nginx:1.7.9": "nginx:1.7.9", "library/nginx:1.7.9": "nginx:1.7.9", "a/b/c:latest": "a/b/c:latest",
		"nginx:slow-1ms": "nginx:slow-1ms", "nginx:slow-motion": "nginx:slow-motion",
	} {
		pulled, err := pull(t, address, image)
		if err != nil {
			t.Fatal(err)
		}
		if got := label(t, pulled); got != want {
			t.Errorf("%s is the stand-in for %s", image, got)
		}
		digest, err := pulled.Digest()
		if err != nil {
			t.Fatal(err)
		}
		repository, _, _ := strings.Cut(image, ":")
		if _, err := pull(t, address, repository+"@"+digest.String()); err != nil {
			t.Errorf("it cannot be had by its digest: %v", err)
		}
	}
}

func TestWhatHasNoStandIn(t *testing.T) {
	with, without := serve(t, t.TempDir(), labelled{}), serve(t, t.TempDir(), nil)
	if _, err := pull(t, with, "nginx:missing-1"); err == nil {
		t.Error("a tag that is to be missing is there")
	}
	if _, err := pull(t, with, "nginx@sha256:"+strings.Repeat("0", 64)); err == nil {
		t.Error("a digest that no client pushed is there")
	}
	if _, err := pull(t, without, "nginx:1.7.9"); err == nil {
		t.Error("there is a stand-in made of nothing")
	}
}

func TestNoImageOfTheAbsentHostExists(t *testing.T) {
	address := serve(t, t.TempDir(), labelled{})
	if _, err := pull(t, address, "web:v1"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/v2/web/manifests/v1":                               http.StatusOK,
		"/v2/web/manifests/v1?ns=docker.io":                  http.StatusOK,
		"/v2/web/manifests/v1?ns=" + AbsentHost:              http.StatusNotFound,
		"/v2/" + AbsentHost + "/web/manifests/v1":            http.StatusNotFound,
		"/v2/web/absent.invalid/manifests/v1":                http.StatusOK,
		"/v2/library/web/manifests/v1?ns=" + AbsentHost:      http.StatusNotFound,
		"/v2/web/blobs/sha256:0?ns=" + AbsentHost:            http.StatusNotFound,
		"/v2/absent.invalid.example.com/web/manifests/v1":    http.StatusOK,
		"/v2/web/manifests/v1?ns=" + AbsentHost + ".example": http.StatusOK,
	} {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != want {
			t.Errorf("%s answers %d %s, want %d", path, response.StatusCode, body, want)
		}
	}
	_, err := pull(t, address, AbsentHost+"/web:v1")
	var status *transport.Error
	if !errors.As(err, &status) || len(status.Errors) != 1 || status.Errors[0].Code != "NAME_UNKNOWN" {
		t.Errorf("a client reads %v", err)
	}
}

func TestPushedImagesComeFirstAndSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	address := serve(t, dir, labelled{})
	if _, err := pull(t, address, "kruise/manager:v1"); err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(address+"/library/kruise/manager:v1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, image); err != nil {
		t.Fatal(err)
	}
	want, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{address, serve(t, dir, labelled{})} {
		pulled, err := pull(t, where, "kruise/manager:v1")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pulled.Digest(); err != nil || got != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
		layers, err := pulled.Layers()
		if err != nil || len(layers) != 2 {
			t.Fatalf("got the layers %v, %v", layers, err)
		}
		if _, err := layers[0].Compressed(); err != nil {
			t.Error(err)
		}
	}
}
