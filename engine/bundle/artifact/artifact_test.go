// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
	opabundle "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/artifact"
)

func serve(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		h = wrap(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func archive(t *testing.T) []byte {
	t.Helper()
	b, err := bundle.FromFiles("own", map[string]string{"a.rego": "package extend.rollout.a\n\nrank := {}\n"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	five := int64(5)
	if err := b.BuildArchive(&out, bundle.Build{Revision: "v1", Sequence: &five}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWhatIsPushedIsPulled(t *testing.T) {
	host, text := serve(t, nil), archive(t)
	r := artifact.New(artifact.WithHTTP())
	pinned, err := r.Push(t.Context(), host+"/shop/freeze:v1", text)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.Push(t.Context(), host+"/shop/freeze:v2", text); err != nil || again != pinned {
		t.Errorf("pushed again it is %s, %v, and was %s", again, err, pinned)
	}
	for _, ref := range []string{host + "/shop/freeze:v1", pinned} {
		got, at, err := r.PullArchive(t.Context(), ref)
		if err != nil || !bytes.Equal(got, text) || at != pinned {
			t.Errorf("%s is %d bytes, %s, %v", ref, len(got), at, err)
		}
	}
	ref, err := name.ParseReference(pinned)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	m, err := image.Manifest()
	if err != nil || m.Annotations[artifact.Revision] != "v1" || m.Annotations[artifact.Sequence] != "5" || m.Layers[0].Annotations[artifact.Title] != "bundle.tar.gz" {
		t.Errorf("the manifest is %+v, %v", m, err)
	}
}

func TestWhereAReferenceLeads(t *testing.T) {
	var asked atomic.Int64 // a push writes its blobs side by side
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if r.Method == http.MethodGet && r.URL.Path != "/v2/" {
				t.Errorf("%s was downloaded", r.URL.Path)
			}
			h.ServeHTTP(w, r)
		})
	})
	r := artifact.New(artifact.WithHTTP(), artifact.WithoutRetries())
	pinned, err := r.Push(t.Context(), host+"/shop/freeze:v1", archive(t))
	if err != nil {
		t.Fatal(err)
	}
	if at, err := r.ResolveDigest(t.Context(), host+"/shop/freeze:v1"); err != nil || at != pinned {
		t.Errorf("the tag leads to %s, %v; want %s", at, err, pinned)
	}
	asked.Store(0)
	if at, err := r.ResolveDigest(t.Context(), pinned); err != nil || at != pinned || asked.Load() > 0 {
		t.Errorf("a digest leads to %s, %v, asked %d times", at, err, asked.Load())
	}
	if _, err := r.ResolveDigest(t.Context(), host+"/shop/none:v1"); err == nil {
		t.Error("what is not there leads somewhere")
	}
	if _, err := r.ResolveDigest(t.Context(), "UPPER/x"); !errors.As(err, new(artifact.ReferenceError)) {
		t.Errorf("a reference that is none: %v", err)
	}
}

func TestHowMuchIsPulledIsForTheCallerToSay(t *testing.T) {
	host, text := serve(t, nil), archive(t)
	if _, err := artifact.New(artifact.WithHTTP()).Push(t.Context(), host+"/x:v1", text); err != nil {
		t.Fatal(err)
	}
	for size, fits := range map[int64]bool{int64(len(text)): true, int64(len(text)) - 1: false} {
		_, _, err := artifact.New(artifact.WithHTTP(), artifact.WithMaxSize(size)).PullArchive(t.Context(), host+"/x:v1")
		if large := errors.As(err, new(artifact.TooLargeError)); large == fits || fits && err != nil {
			t.Errorf("%d bytes of at most %d: %v", len(text), size, err)
		}
	}
}

// TestOPAWouldFindIt looks where OPA's downloader does: for the first layer of
// this media type, which is the archive.
func TestOPAWouldFindIt(t *testing.T) {
	host := serve(t, nil)
	pinned, err := artifact.New(artifact.WithHTTP()).Push(t.Context(), host+"/freeze:v1", archive(t))
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(pinned)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	m, err := image.Manifest()
	if err != nil || m.MediaType != "application/vnd.oci.image.manifest.v1+json" || m.Config.MediaType != "application/vnd.oci.image.config.v1+json" ||
		len(m.Layers) != 1 || m.Layers[0].MediaType != "application/vnd.oci.image.layer.v1.tar+gzip" {
		t.Fatalf("the manifest is %+v, %v", m, err)
	}
	layer, err := image.LayerByDigest(m.Layers[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	text, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := opabundle.NewReader(text).Read()
	if err != nil || theirs.Manifest.Revision != "v1" || len(theirs.Modules) != 1 {
		t.Errorf("OPA reads %v, %v", theirs.Manifest, err)
	}
}

func TestWhatIsNotPulled(t *testing.T) {
	host := serve(t, nil)
	push := func(path string, image v1.Image) {
		ref, err := name.ParseReference(host + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image); err != nil {
			t.Fatal(err)
		}
	}
	other, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	push("/empty:v1", empty.Image)
	push("/docker:v1", other)
	huge, err := random.Layer(17<<20, types.OCILayer)
	if err != nil {
		t.Fatal(err)
	}
	large, err := mutate.AppendLayers(empty.Image, huge)
	if err != nil {
		t.Fatal(err)
	}
	push("/large:v1", large)
	index, err := name.ParseReference(host + "/index:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(index, empty.Index); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ ref, err string }{
		"what is not there":             {host + "/none:v1", "/none:v1: the registry has no such repository, tag or digest (404)"},
		"an image of nothing":           {host + "/empty:v1", "has no layer application/vnd.oci.image.layer.v1.tar+gzip"},
		"an image of docker":            {host + "/docker:v1", "has no layer"},
		"an artifact that is too large": {host + "/large:v1", "larger than 16777216 bytes"},
		"many images":                   {host + "/index:v1", "a bundle is one image"},
		"a digest that is none":         {host + "/empty@sha256:12", "reading the reference"},
		"a registry that is not there":  {"127.0.0.1:1/x:v1", "pulling bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := artifact.New(artifact.WithHTTP()).PullArchive(t.Context(), tc.ref); err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
		})
	}
}

func TestWhatIsNotPushed(t *testing.T) {
	host := serve(t, nil)
	r := artifact.New(artifact.WithHTTP())
	if _, err := r.Push(t.Context(), host+"/x:v1", []byte("no archive")); err == nil {
		t.Error("what is no bundle was pushed")
	}
	var wrong artifact.ReferenceError
	for _, ref := range []string{"UPPER/x", host + "/x@sha256:" + strings.Repeat("0", 64)} {
		if _, err := r.Push(t.Context(), ref, archive(t)); !errors.As(err, &wrong) {
			t.Errorf("%s was no mistake: %v", ref, err)
		}
	}
}

// TestARegistryThatLies answers with other bytes than those of the digest.
func TestARegistryThatLies(t *testing.T) {
	var lying atomic.Bool
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if lying.Load() && strings.Contains(r.URL.Path, "/blobs/") {
				_, _ = w.Write([]byte("something else"))
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	r := artifact.New(artifact.WithHTTP())
	pinned, err := r.Push(t.Context(), host+"/x:v1", archive(t))
	if err != nil {
		t.Fatal(err)
	}
	lying.Store(true)
	if _, _, err := r.PullArchive(t.Context(), pinned); err == nil {
		t.Error("other bytes were taken")
	}
}

func TestARegistryThatRefusesIsToldOfInWordsOfWhoAsks(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusUnauthorized: "/shop/freeze:v1: the registry wants other credentials, or any (401): docker login 127.0.0.1:",
		http.StatusForbidden:    "/shop/freeze:v1: the registry does not let these credentials do it (403): docker login 127.0.0.1:",
	} {
		host := serve(t, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v2/" {
					return
				}
				w.WriteHeader(status)
			})
		})
		r := artifact.New(artifact.WithHTTP(), artifact.WithKeychain(authn.NewMultiKeychain()))
		_, pushing := r.Push(t.Context(), host+"/shop/freeze:v1", archive(t))
		_, _, pulling := r.PullArchive(t.Context(), host+"/shop/freeze:v1")
		for what, err := range map[string]error{"pushing bundle to ": pushing, "pulling bundle from ": pulling} {
			var answer *transport.Error
			if err == nil || !strings.HasPrefix(err.Error(), what+host+want) || strings.Contains(err.Error(), "GET") || !errors.As(err, &answer) {
				t.Errorf("%s%d is told as: %v", what, status, err)
			}
		}
	}
}

func TestCredentialsAreThoseOfTheKeychain(t *testing.T) {
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "ann" || password != "pw" {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	if _, err := artifact.New(artifact.WithHTTP(), artifact.WithKeychain(anonymous{})).Push(t.Context(), host+"/x:v1", archive(t)); err == nil {
		t.Error("anybody may push")
	}
	if _, err := artifact.New(artifact.WithHTTP(), artifact.WithKeychain(ann{})).Push(t.Context(), host+"/x:v1", archive(t)); err != nil {
		t.Error(err)
	}
}

type (
	ann       struct{}
	anonymous struct{}
)

func (ann) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: "ann", Password: "pw"}, nil
}

func (anonymous) Resolve(authn.Resource) (authn.Authenticator, error) { return authn.Anonymous, nil }
