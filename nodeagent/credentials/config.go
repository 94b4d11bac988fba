// SPDX-License-Identifier: Apache-2.0

// Package credentials asks the credential provider plugins of a node for logins to
// registries, as the kubelet does. Plugins are programs that read the name of an image from their
// standard input, and print a login.
//
// The configuration is a CredentialProviderConfig of kubelet.config.k8s.io, as in
// https://kubernetes.io/docs/tasks/administer-cluster/kubelet-credential-provider/.
// Tokens of service accounts (tokenAttributes) are not supported, since the agent pulls images for a
// node and not for a pod.
package credentials

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	config "k8s.io/kubelet/config/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/nodeagent/keyring"
)

const (
	configGroup = "kubelet.config.k8s.io"
	pluginGroup = "credentialprovider.kubelet.k8s.io"
)

func configVersions() []string { return []string{"v1", "v1beta1", "v1alpha1"} }

// Providers are the plugins of a node.
type Providers struct {
	all   []*provider
	wrong error
	now   func() time.Time
}

// LoadProviders reads the configuration in a file; the plugins are programs in a directory. Without the
// file there are no plugins. The error of an invalid file names its field; ImageLogins returns it for
// every image until the agent is started with another file.
func LoadProviders(file, directory string) (*Providers, error) {
	p := &Providers{now: time.Now}
	raw, err := os.ReadFile(file)
	switch {
	case file == "" || errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err == nil:
		p.all, err = parseConfig(raw, directory)
	}
	if err != nil {
		p.wrong = fmt.Errorf("reading the credential providers in %s: %w", file, err)
	}
	return p, p.wrong
}

func parseConfig(raw []byte, directory string) (out []*provider, err error) {
	c := config.CredentialProviderConfig{}
	text, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, err
	}
	strict, err := kjson.UnmarshalStrict(text, &c)
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	group, version, _ := strings.Cut(c.APIVersion, "/")
	switch {
	case c.Kind != "CredentialProviderConfig":
		return nil, fmt.Errorf("kind is %q, want CredentialProviderConfig", c.Kind)
	case group != configGroup || !slices.Contains(configVersions(), version):
		return nil, fmt.Errorf("apiVersion is %q, want %s/v1", c.APIVersion, configGroup)
	case len(c.Providers) == 0:
		return nil, errors.New("providers is empty, want one or more; turn daemon.credentialProvider off if there are none")
	}
	var wrong []error
	names := map[string]bool{}
	for i := range c.Providers {
		field := fmt.Sprintf("providers[%d]", i)
		spec := &c.Providers[i]
		if names[spec.Name] {
			wrong = append(wrong, fmt.Errorf("%s.name is %q, which another provider has", field, spec.Name))
		}
		names[spec.Name] = true
		p, err := newProvider(field, spec, directory)
		wrong = append(wrong, err)
		out = append(out, p)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return out, nil
}

func newProvider(field string, spec *config.CredentialProvider, directory string) (*provider, error) {
	p := &provider{spec: spec, program: filepath.Join(directory, spec.Name), cache: map[string]cached{}}
	var wrong []error
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(field+"."+format, args...)) }
	if spec.Name == "" || spec.Name == "." || spec.Name == ".." || strings.ContainsAny(spec.Name, "/ ") {
		bad("name is %q, want the name of a program in %s", spec.Name, directory)
	}
	if group, version, _ := strings.Cut(spec.APIVersion, "/"); group != pluginGroup || !slices.Contains(configVersions(), version) {
		bad("apiVersion is %q, want %s/v1", spec.APIVersion, pluginGroup)
	}
	if spec.DefaultCacheDuration == nil || spec.DefaultCacheDuration.Duration < 0 {
		bad("defaultCacheDuration is missing or negative, want how long an answer is kept, such as 12h, or 0s")
	}
	if spec.TokenAttributes != nil {
		bad("tokenAttributes is not supported: the agent pulls images for its node, not for the service account of a pod")
	}
	if len(spec.MatchImages) == 0 {
		bad("matchImages is empty, want patterns of images such as *.registry.example.com")
	}
	for i, text := range spec.MatchImages {
		pattern, err := keyring.ParsePattern(text)
		if err != nil {
			bad("matchImages[%d] is %q: %w", i, text, err)
		}
		p.matches = append(p.matches, pattern)
	}
	return p, errors.Join(wrong...)
}
