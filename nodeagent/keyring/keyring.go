// SPDX-License-Identifier: Apache-2.0

// Package keyring finds the logins of pull secrets that match an image, as the kubelet does. The node agent uses it to pull
// images, and the manager to pull bundles of policies.
package keyring

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Login has the credentials for a registry.
type Login struct{ Username, Password, Auth, IdentityToken, RegistryToken string }

// Keyring has the logins of pull secrets, and finds those that match an image.
type Keyring struct {
	logins map[string][]*Login // by the pattern that they are for
}

// dockerEntry is the entry of a Docker configuration for a registry.
type dockerEntry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// hubNames are further names of the registry docker.io: that of docker login, and that of the host which serves the images.
func hubNames() []string { return []string{"index.docker.io", "registry-1.docker.io"} }

// AddSecret adds the logins of a Secret. An invalid entry is left out, and the error names it. The error contains no values of the
// Secret: users who may not read it may read messages about images.
func (k *Keyring) AddSecret(secret *corev1.Secret) error {
	key := corev1.DockerConfigJsonKey
	if secret.Type == corev1.SecretTypeDockercfg {
		key = corev1.DockerConfigKey
	}
	raw, ok := secret.Data[key]
	if !ok {
		return fmt.Errorf("it has no data of key %s", key)
	}
	entries := map[string]json.RawMessage{}
	var err error
	if key == corev1.DockerConfigKey {
		err = json.Unmarshal(raw, &entries)
	} else {
		config := struct {
			Auths map[string]json.RawMessage `json:"auths"`
		}{}
		err = json.Unmarshal(raw, &config)
		entries = config.Auths
	}
	if err != nil {
		return fmt.Errorf("its data of key %s is no configuration of Docker", key)
	}
	var wrong []error
	for i, place := range slices.Sorted(maps.Keys(entries)) {
		if err := k.addEntry(place, entries[place]); err != nil {
			wrong = append(wrong, fmt.Errorf("its entry %s %w", nameEntry(place, i), err))
		}
	}
	if more := len(wrong) - mostWrong; more > 0 {
		wrong = append(wrong[:mostWrong], fmt.Errorf("%d more of its entries are wrong", more))
	}
	return errors.Join(wrong...)
}

// mostWrong is how many entries an error names: a Secret may have tens of thousands.
const mostWrong = 3

// nameEntry names an entry by its host, or by its number if the key is no valid host: it may be a login by mistake.
func nameEntry(text string, i int) string {
	p, err := ParsePlace(normalizePlace(text))
	if err != nil || len(p.labels) < 2 {
		return strconv.Itoa(i + 1)
	}
	host := strings.Join(p.labels, ".")
	if p.port != "" {
		host += ":" + p.port
	}
	return strconv.Quote(host)
}

func (k *Keyring) addEntry(place string, raw json.RawMessage) error {
	e := dockerEntry{}
	if json.Unmarshal(raw, &e) != nil {
		return errors.New("is no login: want an object with username and password, or with auth")
	}
	login := &Login{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken, RegistryToken: e.RegistryToken}
	if e.Auth != "" {
		name, password, err := splitAuth(e.Auth)
		if err != nil {
			return err
		}
		login.Username, login.Password = name, password
	}
	if *login == (Login{}) {
		return nil
	}
	pattern := normalizePlace(place)
	if _, err := ParsePlace(pattern); err != nil {
		return errors.New("names no registry")
	}
	if k.logins == nil {
		k.logins = map[string][]*Login{}
	}
	k.logins[pattern] = append(k.logins[pattern], login)
	return nil
}

// splitAuth reads a field auth, which is the base64 of name:password, with or without padding.
func splitAuth(auth string) (name, password string, err error) {
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(auth), "="))
	if err != nil {
		return "", "", errors.New("has a field auth that is no base64")
	}
	name, password, ok := strings.Cut(string(text), ":")
	if !ok {
		return "", "", errors.New("has a field auth that is not the base64 of name:password")
	}
	return name, strings.Trim(password, "\x00"), nil
}

// normalizePlace removes from the name of an entry the parts that Docker adds to a registry: the scheme, and the version of
// the API.
func normalizePlace(text string) string {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "https://"), "http://")
	host, path, _ := strings.Cut(text, "/")
	for _, version := range []string{"v1", "v2"} {
		if rest, ok := strings.CutPrefix(path, version+"/"); ok {
			path = rest
		}
	}
	if path == "" {
		return host
	}
	return host + "/" + path
}

// LoginsFor returns the logins for an image, which has no tag. Of the entries that match, a longer path comes before a shorter
// one, as in the kubelet. Entries for the other names of docker.io come last.
func (k *Keyring) LoginsFor(of string) ([]*Login, error) {
	full, registry, err := ImageOf(of)
	if err != nil {
		return nil, err
	}
	out, err := k.matchingLogins(full)
	if err != nil || registry != "docker.io" {
		return out, err
	}
	for _, host := range hubNames() {
		more, err := k.matchingLogins(host + strings.TrimPrefix(full, registry))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return slices.CompactFunc(out, func(a, b *Login) bool { return *a == *b }), nil
}

func (k *Keyring) matchingLogins(full string) (out []*Login, err error) {
	at, err := ParsePlace(full)
	if err != nil {
		return nil, fmt.Errorf("reading the name of image %s: %w", full, err)
	}
	for _, text := range slices.Backward(slices.Sorted(maps.Keys(k.logins))) {
		if pattern, err := ParsePlace(text); err == nil && pattern.MatchesPlace(at) {
			out = append(out, k.logins[text]...)
		}
	}
	return out, nil
}
