// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	ocitypes "github.com/google/go-containerregistry/pkg/v1/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/engine/bundle/artifact"
)

type ann struct{}

func (ann) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: "ann", Password: ours}, nil
}

func push(t *testing.T, reference string, transport http.RoundTripper) (pinned string) {
	t.Helper()
	pinned, err := artifact.New(artifact.WithHTTP(), artifact.WithKeychain(ann{}), artifact.WithTransport(transport)).Push(t.Context(), reference, archive(t))
	if err != nil {
		t.Fatal(err)
	}
	return pinned
}

func TestAnArtifactIsDownloadedOnce(t *testing.T) {
	var blobs, asked atomic.Int64 // the client's connections are served side by side
	var headless atomic.Bool
	store := images()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.Contains(r.URL.Path, "/blobs/") && r.Method == http.MethodGet {
			blobs.Add(1)
		}
		if headless.Load() && r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		store.ServeHTTP(w, r)
	})
	host := strings.TrimPrefix(s.URL, "http://")
	pinned := push(t, host+"/shop/freeze:v1", http.DefaultTransport)
	f, text := fetch.New(holding(t)), archive(t)
	tagged := fetch.Source{OCI: &fetch.OCI{Reference: host + "/shop/freeze:v1", Insecure: true}}
	blobs.Store(0)
	got, err := f.FetchBundle(t.Context(), tagged, nil)
	same(t, got, err, text)
	if got.Reference != pinned {
		t.Errorf("the reference is %s, want %s", got.Reference, pinned)
	}
	if again, err := f.FetchBundle(t.Context(), tagged, got); err != nil || again != got || blobs.Load() != 1 {
		t.Errorf("downloaded %d times: %v", blobs.Load(), err)
	}
	headless.Store(true)
	if again, err := f.FetchBundle(t.Context(), tagged, got); err != nil || again != got {
		t.Errorf("a registry without HEAD: %v", err)
	}
	by := fetch.Source{OCI: &fetch.OCI{Reference: pinned, Insecure: true}}
	first, err := f.FetchBundle(t.Context(), by, nil)
	same(t, first, err, text)
	asked.Store(0)
	if again, err := f.FetchBundle(t.Context(), by, first); err != nil || again != first || asked.Load() != 0 {
		t.Errorf("what a digest names was asked for %d times: %v", asked.Load(), err)
	}
}

func TestARegistryWithTLSAndPasswords(t *testing.T) {
	s, ca := serveTLS(t, behind("ann", ours, images()))
	host := strings.TrimPrefix(s.URL, "https://")
	push(t, host+"/shop/freeze:v1", s.Client().Transport)
	config := func(registry, password string) map[string]string {
		return map[string]string{".dockerconfigjson": fmt.Sprintf(`{"auths": {%q: {"username": "ann", "password": %q}}}`, registry, password)}
	}
	c := holding(t,
		secret("json", corev1.SecretTypeDockerConfigJson, config("https://"+host, ours)),
		secret("other", corev1.SecretTypeDockerConfigJson, config("other.example", ours)),
		secret("wrong", corev1.SecretTypeDockerConfigJson, config(host, "no"+ours)),
		secret("old", corev1.SecretTypeDockercfg, map[string]string{".dockercfg": fmt.Sprintf(`{%q: {"auth": "YW5uOk9VUlBBU1NXT1JE"}}`, host)}),
		secret("several", corev1.SecretTypeDockerConfigJson, map[string]string{".dockerconfigjson": fmt.Sprintf(
			`{"auths": {%q: {"username": "ann", "password": "no"}, %q: {"username": "ann", "password": %q}}}`, host+"/shop", host, ours)}),
		secret("none", corev1.SecretTypeOpaque, config(host, ours)),
		secret("broken", corev1.SecretTypeDockerConfigJson, map[string]string{".dockerconfigjson": ours}),
	)
	get := func(t *testing.T, r client.Reader, names ...string) (*fetch.Fetched, error) {
		from := &fetch.OCI{Reference: host + "/shop/freeze:v1", CABundle: ca}
		for _, n := range names {
			from.PullSecrets = append(from.PullSecrets, types.NamespacedName{Namespace: "shop", Name: n})
		}
		return fetch.New(r, fetch.WithServiceAccount(types.NamespacedName{Namespace: "own", Name: "boss"})).FetchBundle(t.Context(), fetch.Source{OCI: from}, nil)
	}
	for _, names := range [][]string{{"json"}, {"old"}, {"other", "json"}, {"several"}, {"wrong", "json"}} {
		got, err := get(t, c, names...)
		same(t, got, err, archive(t))
	}
	for _, names := range [][]string{nil, {"other"}, {"wrong"}} {
		_, err := get(t, c, names...)
		fails[fetch.UnauthorizedError](t, err, true, host+"/shop/freeze:v1", "secret")
	}
	for _, n := range []string{"none", "broken"} {
		_, err := get(t, c, n)
		fails[fetch.ContentError](t, err, true, "secret shop/"+n, "kubectl create secret docker-registry")
	}
	_, err := get(t, c, "absent")
	fails[fetch.NotFoundError](t, err, true, "secret shop/absent is not there")
	_, err = get(t, refusing(t, apierrors.NewForbidden(corev1.Resource("secrets"), "json", nil)), "json")
	fails[fetch.ForbiddenError](t, err, true, "secret shop/json",
		"kubectl create rolebinding kruise-bundle-credentials -n shop --clusterrole=kruise-bundle-credentials --serviceaccount=own:boss")
	_, err = fetch.New(c).FetchBundle(t.Context(), fetch.Source{OCI: &fetch.OCI{Reference: host + "/shop/freeze:v1"}}, nil)
	fails[fetch.UnavailableError](t, err, false, "certificate signed by unknown authority")
}

// A registry may answer that there is no artifact to a login that may not read it. There is an end to logins that are tried.
func TestTheNextLoginIsTriedWhereOneFindsNothing(t *testing.T) {
	var tried atomic.Int64
	store := images()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
			tried.Add(1)
		}
		if user, _, ok := r.BasicAuth(); ok && user != "ann" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		behind("ann", ours, store).ServeHTTP(w, r)
	})
	host := strings.TrimPrefix(s.URL, "http://")
	push(t, host+"/shop/freeze:v1", http.DefaultTransport)
	get := func(auths ...string) (*fetch.Fetched, error) {
		c := holding(t, secret("pull", corev1.SecretTypeDockerConfigJson, map[string]string{".dockerconfigjson": `{"auths": {` + strings.Join(auths, ", ") + `}}`}))
		return fetch.New(c).FetchBundle(t.Context(), fetch.Source{OCI: &fetch.OCI{
			Reference: host + "/shop/freeze:v1", Insecure: true, PullSecrets: []types.NamespacedName{{Namespace: "shop", Name: "pull"}},
		}}, nil)
	}
	ann, bob := fmt.Sprintf(`%q: {"username": "ann", "password": %q}`, host, ours), fmt.Sprintf(`%q: {"username": "bob", "password": "b"}`, host+"/shop")
	got, err := get(ann, bob)
	same(t, got, err, archive(t))
	_, err = get(bob)
	fails[fetch.NotFoundError](t, err, true, host+"/shop/freeze:v1")
	var many []string
	for i, first := range []string{"127", "12*", "1*", "*", "*7"} {
		for j, rest := range []string{"0.0", "*.0", "0.*", "*.*"} {
			many = append(many, fmt.Sprintf(`%q: {"username": "bob", "password": "b%d%d"}`, strings.Replace(host, "127.0.0", first+"."+rest, 1), i, j))
		}
	}
	tried.Store(0)
	_, err = get(many...)
	fails[fetch.NotFoundError](t, err, true, "10 logins were tried, and 10 more")
	if tried.Load() != 10 {
		t.Errorf("%d logins were tried, want 10", tried.Load())
	}
}

// TestSecretsAreReadByName has a reader that can do nothing else.
func TestSecretsAreReadByName(t *testing.T) {
	c := interceptor.NewClient(holding(t), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			t.Error("something was listed")
			return nil
		},
	})
	_, err := fetch.New(c).FetchBundle(t.Context(), fetch.Source{OCI: &fetch.OCI{Reference: "127.0.0.1:1/x", PullSecrets: []types.NamespacedName{{Namespace: "shop", Name: "absent"}}}}, nil)
	fails[fetch.NotFoundError](t, err, true)
}

func TestPlainHTTPMustBeAskedFor(t *testing.T) {
	s := serve(t, images().ServeHTTP)
	host := strings.TrimPrefix(s.URL, "http://")
	push(t, host+"/x:v1", http.DefaultTransport)
	_, err := fetch.New(holding(t)).FetchBundle(t.Context(), fetch.Source{OCI: &fetch.OCI{Reference: host + "/x:v1"}}, nil)
	fails[fetch.UnavailableError](t, err, false, "insecure")
}

func TestArtifactsThatAreNoBundle(t *testing.T) {
	broken, store := "", images()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if broken != "" && strings.Contains(r.URL.Path, broken) && r.Method == http.MethodGet {
			switch broken {
			case "/manifests/":
				w.Header().Set("Content-Type", string(ocitypes.OCIManifestSchema1))
				_, _ = io.WriteString(w, `{"schemaVersion": "`+theirs)
			case "/v2/":
				http.Error(w, theirs, http.StatusInternalServerError)
			default:
				_, _ = io.WriteString(w, theirs)
			}
			return
		}
		store.ServeHTTP(w, r)
	})
	host := strings.TrimPrefix(s.URL, "http://")
	push(t, host+"/good:v1", http.DefaultTransport)
	write := func(path string, size int64) {
		layer, err := random.Layer(size, ocitypes.OCILayer)
		if err != nil {
			t.Fatal(err)
		}
		image, err := mutate.AppendLayers(empty.Image, layer)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.ParseReference(host+path, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		if size == 0 {
			image = empty.Image
		}
		if err := remote.Write(ref, image); err != nil {
			t.Fatal(err)
		}
	}
	write("/empty:v1", 0)
	write("/large:v1", fetch.MaxSize+1)
	for name, tc := range map[string]struct {
		path, broken string
		check        func(*testing.T, error)
	}{
		"what is not there": {"/none:v1", "", func(t *testing.T, err error) {
			fails[fetch.NotFoundError](t, err, true, host+"/none:v1")
		}},
		"an image of nothing": {"/empty:v1", "", func(t *testing.T, err error) {
			fails[fetch.ContentError](t, err, true, "has no layer")
		}},
		"one that is too large": {"/large:v1", "", func(t *testing.T, err error) {
			fails[fetch.TooLargeError](t, err, true, host+"/large:v1")
		}},
		"a reference that is none": {"/UPPER", "", func(t *testing.T, err error) {
			fails[fetch.SourceError](t, err, true, "oci.reference")
		}},
		"other bytes": {"/good:v1", "/blobs/", func(t *testing.T, err error) {
			fails[fetch.UnavailableError](t, err, false, "not what was asked for")
		}},
		"a manifest that breaks off": {"/good:v1", "/manifests/", func(t *testing.T, err error) {
			fails[fetch.UnavailableError](t, err, false, "not what was asked for")
		}},
		"a registry in trouble": {"/good:v1", "/v2/", func(t *testing.T, err error) {
			fails[fetch.UnavailableError](t, err, false, "500")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			broken = tc.broken
			_, err := fetch.New(holding(t)).FetchBundle(t.Context(), fetch.Source{OCI: &fetch.OCI{Reference: host + tc.path, Insecure: true}}, nil)
			tc.check(t, err)
		})
	}
}
