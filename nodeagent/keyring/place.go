// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Place is the place of an image, or a pattern of such places: a registry with its port, and the path
// of a repository.
type Place struct {
	labels []string // of the host
	port   string
	path   string
}

// ParsePattern reads a pattern such as *.registry.example.com:5000/team. A * matches any characters
// within one label of the host.
func ParsePattern(text string) (Place, error) {
	p, err := ParsePlace(text)
	if err != nil {
		return Place{}, err
	}
	if strings.Contains(p.port+p.path, "*") {
		return Place{}, errors.New("a * may be in the host alone")
	}
	for _, label := range p.labels {
		if _, err := path.Match(label, ""); err != nil {
			return Place{}, fmt.Errorf("%q is no pattern: %w", label, err)
		}
	}
	return p, nil
}

// ParsePlace reads a place, with a scheme or without.
func ParsePlace(text string) (Place, error) {
	for _, scheme := range []string{"https://", "http://"} {
		text = strings.TrimPrefix(text, scheme)
	}
	u, err := url.Parse("https://" + text)
	if err != nil {
		return Place{}, err
	}
	if u.Hostname() == "" {
		return Place{}, errors.New("it has no host")
	}
	return Place{labels: strings.Split(u.Hostname(), "."), port: u.Port(), path: u.Path}, nil
}

// MatchesPlace reports whether a pattern matches a place: it has as many labels, each of which
// matches, the same port, and the same path or a parent of it.
func (p Place) MatchesPlace(at Place) bool {
	if len(p.labels) != len(at.labels) || p.port != at.port || !strings.HasPrefix(at.path, p.path) {
		return false
	}
	for i, label := range p.labels {
		if ok, err := path.Match(label, at.labels[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// ImageOf returns the full name of an image without its tag, such as docker.io/library/nginx, and its
// registry.
func ImageOf(text string) (full, registry string, err error) {
	repository, err := name.NewRepository(text)
	if err != nil {
		return "", "", fmt.Errorf("reading the name of image %s: %w", text, err)
	}
	registry = repository.RegistryStr()
	if registry == name.DefaultRegistry {
		registry = "docker.io" // as the kubelet and its plugins name it
	}
	return registry + "/" + repository.RepositoryStr(), registry, nil
}
