// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// configOf is a pull secret with an entry for each place: the name of its user is the place.
func configOf(t *testing.T, places ...string) *corev1.Secret {
	t.Helper()
	auths := map[string]any{}
	for _, place := range places {
		user := strings.ReplaceAll(place, ":", ";")
		auths[place] = map[string]string{"auth": base64.RawStdEncoding.EncodeToString([]byte(user + ":x"))}
	}
	raw, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: raw}}
}

func TestEntriesMatchAsTheKubeletMatchesThem(t *testing.T) {
	for _, tc := range []struct {
		image  string
		places []string
		want   []string // the users, in the order in which they are tried; ; is for :
	}{
		{"nginx", []string{"docker.io"}, []string{"docker.io"}},
		{"nginx", []string{"https://docker.io"}, []string{"https;//docker.io"}},
		{"nginx", []string{"http://docker.io/"}, []string{"http;//docker.io/"}},
		{"nginx", []string{"https://index.docker.io/v1/"}, []string{"https;//index.docker.io/v1/"}},
		{"nginx", []string{"https://index.docker.io/v2/"}, []string{"https;//index.docker.io/v2/"}},
		{"nginx", []string{"index.docker.io"}, []string{"index.docker.io"}},
		{"nginx", []string{"registry-1.docker.io"}, []string{"registry-1.docker.io"}},
		{"index.docker.io/library/nginx", []string{"docker.io"}, []string{"docker.io"}},
		{"shop/web", []string{"docker.io/library", "docker.io/shop", "docker.io"}, []string{"docker.io/shop", "docker.io"}},
		{"shop/web", []string{"https://index.docker.io/v1/", "docker.io", "registry-1.docker.io"}, []string{"docker.io", "https;//index.docker.io/v1/", "registry-1.docker.io"}},
		{"nginx", []string{"quay.io", "*.io", "docker.com", "io"}, []string{"*.io"}},
		{"registry.example.com/shop", []string{"docker.io", "index.docker.io"}, nil},
		{"registry.example.com/shop/web", []string{"registry.example.com", "registry.example.com/shop", "https://registry.example.com/v1/"},
			[]string{"registry.example.com/shop", "https;//registry.example.com/v1/", "registry.example.com"}},
		{"registry.example.com/shop", []string{"*.example.com", "*.*.com", "*.com", "re*.example.com"}, []string{"re*.example.com", "*.example.com", "*.*.com"}},
		{"registry.example.com:5000/shop", []string{"registry.example.com", "registry.example.com:5000", "*.example.com:5000"}, []string{"registry.example.com;5000", "*.example.com;5000"}},
		{"localhost:5000/shop", []string{"localhost:5000"}, []string{"localhost;5000"}},
	} {
		t.Run(tc.image+" by "+strings.Join(tc.places, " "), func(t *testing.T) {
			k := &Keyring{}
			if err := k.AddSecret(configOf(t, tc.places...)); err != nil {
				t.Fatal(err)
			}
			logins, err := k.LoginsFor(tc.image)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, login := range logins {
				got = append(got, login.Username)
				if login.Password != "x" {
					t.Errorf("got %+v", login)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestEachSecretOfARegistryIsTriedInTurn(t *testing.T) {
	k := &Keyring{}
	for _, user := range []string{"ann", "bob"} {
		raw := []byte(`{"registry.example.com":{"username":"` + user + `","password":"p"},"empty.example.com":{}}`)
		if err := k.AddSecret(&corev1.Secret{Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: raw}}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := k.LoginsFor("registry.example.com/shop")
	if err != nil || len(got) != 2 || got[0].Username != "ann" || got[1].Username != "bob" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := k.LoginsFor("empty.example.com/shop"); err != nil || len(got) > 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestErrorsOfPullSecretsDoNotRepeatThem(t *testing.T) {
	for text, want := range map[string]string{
		`{"auths":{"a.example.com":{"auth":12345678},"b.example.com":{"username":"u","password":"p"}}}`:       `its entry "a.example.com" is no login: want an object with username and password, or with auth`,
		`{"auths":{"a.example.com":{"auth":"12345678!"},"b.example.com":{"username":"u","password":"p"}}}`:    `its entry "a.example.com" has a field auth that is no base64`,
		`{"auths":{"a.example.com":{"auth":"MTIzNDU2Nzg="},"b.example.com":{"username":"u","password":"p"}}}`: `its entry "a.example.com" has a field auth that is not the base64 of name:password`,
		`{"auths":{"https://bob:hunter2@a.example.com/v1/":{"auth":1}}}`:                                      `its entry "a.example.com" is no login: want an object with username and password, or with auth`,
		`{"auths":{"hunter2 hunter2":{"auth":1}}}`:                                                            "its entry 1 is no login: want an object with username and password, or with auth",
		`{"auths":{"a.example.com":{},"bob:hunter2":{"auth":1}}}`:                                             "its entry 2 is no login: want an object with username and password, or with auth",
		`{"auths":12345678}`: "its data of key .dockerconfigjson is no configuration of Docker",
	} {
		k := &Keyring{}
		err := k.AddSecret(&corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(text)}})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if got, err := k.LoginsFor("b.example.com/shop"); strings.Contains(text, "b.example.com") && (err != nil || len(got) != 1) {
			t.Errorf("the other entry is not used: %v, %v", got, err)
		}
	}
}

func TestAnErrorNamesFewEntries(t *testing.T) {
	auths := map[string]any{}
	for i := range 20_000 {
		auths[fmt.Sprintf("registry-%05d.example.com", i)] = map[string]string{"auth": "!"}
	}
	raw, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		t.Fatal(err)
	}
	k := &Keyring{}
	if err := k.AddSecret(&corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: raw}}); err == nil ||
		len(err.Error()) > 1024 || !strings.HasSuffix(err.Error(), "19997 more of its entries are wrong") {
		t.Errorf("got %.2000v", err)
	}
}
