// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// The entries of pull secrets match as with the kubelet and the node agent: a secret that pulls images pulls bundles.
func TestEntriesOfPullSecretsMatchAsTheKubeletMatchesThem(t *testing.T) {
	for _, tc := range []struct {
		reference string
		places    []string
		want      []string // the users, in the order in which they are tried; none is nobody
	}{
		{"shop/freeze:v1", []string{"docker.io"}, []string{"docker.io"}},
		{"docker.io/shop/freeze:v1", []string{"https://index.docker.io/v1/"}, []string{"https://index.docker.io/v1/"}},
		{"index.docker.io/shop/freeze:v1", []string{"docker.io", "registry-1.docker.io"}, []string{"docker.io", "registry-1.docker.io"}},
		{"registry.example.com/shop/freeze@sha256:" + strings.Repeat("a", 64), []string{"registry.example.com", "registry.example.com/shop", "registry.example.com/team"},
			[]string{"registry.example.com/shop", "registry.example.com"}},
		{"registry.example.com/freeze", []string{"*.example.com", "*.com"}, []string{"*.example.com"}},
		{"registry.example.com:5000/freeze", []string{"registry.example.com"}, []string{""}},
		{"registry.example.com/freeze", nil, []string{""}},
		{"NO REFERENCE", []string{"docker.io"}, []string{""}},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson}
		var entries []string
		for _, place := range tc.places {
			entries = append(entries, fmt.Sprintf(`%q: {"username": %q, "password": "x"}`, place, place))
		}
		secret.Data = map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths": {` + strings.Join(entries, ", ") + `}}`)}
		f := New(fake.NewClientBuilder().WithObjects(secret).Build())
		keychains, _, err := f.findKeychains(t.Context(), tc.reference, []types.NamespacedName{{Namespace: "shop", Name: "pull"}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, keys := range keychains {
			got = append(got, userOf(t, keys, tc.reference))
			if other := userOf(t, keys, "elsewhere.example.org/x"); other != "" {
				t.Errorf("%s: another registry is shown the login of %s", tc.reference, other)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s by %q: got %q, want %q", tc.reference, tc.places, got, tc.want)
		}
	}
}

// userOf is who a keychain shows to the registry of a reference.
func userOf(t *testing.T, keys authn.Keychain, reference string) string {
	t.Helper()
	parsed, err := name.ParseReference(reference)
	if err != nil {
		return ""
	}
	as, err := keys.Resolve(parsed.Context())
	if err != nil {
		t.Fatal(err)
	}
	config, err := as.Authorization()
	if err != nil {
		t.Fatal(err)
	}
	return config.Username
}
