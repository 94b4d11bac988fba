// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/engine/bundle"
)

const policy = "package extend.rollout.freeze\n\nrank := {}\n"

// archive is a bundle as it is built.
func archive(t testing.TB) []byte {
	t.Helper()
	b, err := bundle.FromFiles("freeze", map[string]string{"freeze.rego": policy})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := b.BuildArchive(&out, bundle.Build{}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// holding is a cluster with these objects. What the API server does with them,
// besides handing them out by name, makes no difference here.
func holding(t testing.TB, objects ...client.Object) client.WithWatch {
	t.Helper()
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
}

func secret(name string, of corev1.SecretType, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Type: of, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// serveTLS returns also the certificate by which to trust the server.
func serveTLS(t testing.TB, h http.Handler) (*httptest.Server, []byte) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func images() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }

// behind asks for a password.
func behind(user, password string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, theirs)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// theirs is what servers answer that no error may tell, and ours is what they
// are not to be told.
const (
	theirs = "SECRETOFTHESERVER"
	ours   = "OURPASSWORD"
)

// fails checks an error: what it is, whether it lasts, what it says, and what it
// must not say.
func fails[E error](t *testing.T, err error, permanent bool, says ...string) {
	t.Helper()
	var want E
	if !errors.As(err, &want) {
		t.Fatalf("got %T %v, want %T", err, err, want)
	}
	if fetch.IsPermanent(err) != permanent {
		t.Errorf("permanent is %v: %v", !permanent, err)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
	for _, s := range []string{theirs, ours, "token="} {
		if strings.Contains(err.Error(), s) {
			t.Errorf("%q tells %q", err, s)
		}
	}
}

// same checks that an archive passed unchanged.
func same(t *testing.T, got *fetch.Fetched, err error, want []byte) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Archive, want) || got.Digest != digest(want) || got.Packed {
		t.Errorf("%d bytes, %s, packed %v; want %d, %s", len(got.Archive), got.Digest, got.Packed, len(want), digest(want))
	}
}

// unpacked are the files of an archive.
func unpacked(t *testing.T, text []byte) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for from := tar.NewReader(zipped); ; {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "/")] = string(b)
	}
}

// noise is text that cannot be packed much.
func noise(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return base64.StdEncoding.EncodeToString(b)
}
