// SPDX-License-Identifier: Apache-2.0

package local

import (
	"io"
	"log"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/regatta-sh/regatta/test/cluster/registry"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// named makes images that only differ by a label.
type named struct{}

func (named) ImageID(repository, tag string) (v1.Image, error) {
	return mutate.Config(empty.Image, v1.Config{Labels: map[string]string{"for": repository + ":" + tag}})
}

// cluster is one of which only the registry runs.
func cluster(t *testing.T, dir string) *Cluster {
	t.Helper()
	handler, err := registry.Open(dir, named{}, log.New(io.Discard, "", 0))
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
	s := &state.State{}
	s.Ports.Registry = server.Listener.Addr().(*net.TCPAddr).Port
	return &Cluster{State: s}
}

func digest(t *testing.T, c *Cluster, image string) string {
	t.Helper()
	at, err := c.reference(image)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := remote.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Digest.String()
}

func TestATagPointsToAnotherImage(t *testing.T) {
	dir := t.TempDir()
	c := cluster(t, dir)
	before, other := digest(t, c, "web:v1"), digest(t, c, "web:v2")
	for _, tc := range []struct{ name, tag, image, want string }{
		{"a stand-in of another tag", "web:v1", "web:v2", other},
		{"what it was, by the digest", "web:v1", "web@" + before, before},
		{"an image of another repository and registry", "docker.io/library/web:v1", "ghcr.io/shop/cart:v3", digest(t, c, "shop/cart:v3")},
		{"a tag that is new", "web:stable", "web:v2", other},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := c.Tag(t.Context(), tc.tag, tc.image)
			if err != nil {
				t.Fatal(err)
			}
			if now := digest(t, c, tc.tag); now != tc.want || got != tc.want {
				t.Errorf("it points to %s, and Tag says %s; want %s", now, got, tc.want)
			}
			at, _ := c.reference(tc.tag)
			if image, err := remote.Image(at); err != nil {
				t.Error(err)
			} else if _, err := image.RawConfigFile(); err != nil {
				t.Errorf("it cannot be pulled: %v", err)
			}
		})
	}
	if got := digest(t, cluster(t, dir), "web:stable"); got != other {
		t.Errorf("after a restart it points to %s, want %s", got, other)
	}
	for _, tc := range []struct{ tag, image, want string }{
		{"web:v1", "web:missing", "reading the manifest of web:missing"},
		{"web@" + other, "web:v1", "reading the image name"},
		{"web:v1", "Web:v1", "reading the image name"},
	} {
		if _, err := c.Tag(t.Context(), tc.tag, tc.image); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s to %s: got %v, want %s", tc.tag, tc.image, err, tc.want)
		}
	}
}
