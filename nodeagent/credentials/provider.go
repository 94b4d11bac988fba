// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	config "k8s.io/kubelet/config/v1"
	plugin "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/keyring"
)

// timeout is how long a plugin may take, as with the kubelet.
const timeout = time.Minute

// MostRemembered is for how many images or registries the answers of a plugin are cached. It is a bound since users
// choose the names.
const MostRemembered = 512

// provider is one plugin. mu is held while it runs, so that simultaneous pulls run it only once.
type provider struct {
	spec    *config.CredentialProvider
	program string
	matches []keyring.Place

	mu    sync.Mutex
	cache map[string]cached
}

type cached struct {
	auth  map[string]plugin.AuthConfig
	until time.Time
}

// ImageLogins returns the logins of the plugins for an image, which has no tag: in the order of the
// plugins, the most specific pattern first. If plugins fail, it returns their errors and the logins of
// the others.
func (p *Providers) ImageLogins(ctx context.Context, of string) (out []*cri.Login, err error) {
	if p.wrong != nil {
		return nil, p.wrong
	}
	if len(p.all) == 0 {
		return nil, nil
	}
	full, registry, err := keyring.ImageOf(of)
	if err != nil {
		return nil, err
	}
	at, err := keyring.ParsePlace(full)
	if err != nil {
		return nil, fmt.Errorf("reading the name of image %s: %w", of, err)
	}
	var wrong []error
	for _, each := range p.all {
		if !slices.ContainsFunc(each.matches, func(pattern keyring.Place) bool { return pattern.MatchesPlace(at) }) {
			continue
		}
		auth, err := each.lookupAuth(ctx, full, registry, p.now)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("asking credential provider %s about %s: %w", each.spec.Name, full, err))
		}
		out = append(out, loginsOf(auth, at)...)
	}
	return out, errors.Join(wrong...)
}

// loginsOf returns the logins of an answer that match a place. As in the kubelet, patterns are in
// reverse alphabetical order, so that a longer path comes before a shorter one.
func loginsOf(auth map[string]plugin.AuthConfig, at keyring.Place) (out []*cri.Login) {
	for _, text := range slices.Backward(slices.Sorted(maps.Keys(auth))) {
		if pattern, err := keyring.ParsePlace(text); err == nil && pattern.MatchesPlace(at) {
			out = append(out, &cri.Login{Username: auth[text].Username, Password: auth[text].Password})
		}
	}
	return out
}

// lookupAuth returns the answer for an image: a cached one, or a new one.
func (p *provider) lookupAuth(ctx context.Context, full, registry string, now func() time.Time) (map[string]plugin.AuthConfig, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.cache, func(_ string, c cached) bool { return !c.until.After(now()) })
	keys := map[plugin.PluginCacheKeyType]string{
		plugin.ImagePluginCacheKeyType: "image " + full, plugin.RegistryPluginCacheKeyType: "registry " + registry, plugin.GlobalPluginCacheKeyType: "all",
	}
	for _, key := range keys {
		if c, ok := p.cache[key]; ok {
			return c.auth, nil
		}
	}
	answer, err := p.runPlugin(ctx, full)
	if err != nil {
		return nil, err
	}
	key, ok := keys[answer.CacheKeyType]
	if !ok {
		return nil, fmt.Errorf("cacheKeyType of its answer is %q, want Image, Registry or Global", answer.CacheKeyType)
	}
	keep := p.spec.DefaultCacheDuration.Duration
	if answer.CacheDuration != nil {
		keep = answer.CacheDuration.Duration
	}
	if keep > 0 {
		for other := range p.cache {
			if len(p.cache) < MostRemembered {
				break
			}
			delete(p.cache, other) // any entry: the plugin is asked again
		}
		p.cache[key] = cached{auth: answer.Auth, until: now().Add(keep)}
	}
	return answer.Auth, nil
}

// runPlugin runs the program.
func (p *provider) runPlugin(ctx context.Context, full string) (*plugin.CredentialProviderResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request := plugin.CredentialProviderRequest{Image: full}
	request.APIVersion, request.Kind = p.spec.APIVersion, "CredentialProviderRequest"
	raw, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	var said, wrote bytes.Buffer
	command := exec.CommandContext(ctx, p.program, p.spec.Args...) //nolint:gosec // the administrator of the node names it
	command.Stdin, command.Stdout, command.Stderr, command.WaitDelay = bytes.NewReader(raw), &said, &wrote, time.Second
	command.Env = os.Environ()
	for _, e := range p.spec.Env {
		command.Env = append(command.Env, e.Name+"="+e.Value)
	}
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it did not answer: %w", ctx.Err())
		}
		return nil, fmt.Errorf("%w: %s", err, firstLine(wrote.String()))
	}
	answer := &plugin.CredentialProviderResponse{}
	if err := json.Unmarshal(said.Bytes(), answer); err != nil {
		return nil, fmt.Errorf("its answer is no CredentialProviderResponse: %w", err) // without the answer, which may be a password
	}
	if answer.Kind != "CredentialProviderResponse" || answer.APIVersion != p.spec.APIVersion {
		return nil, fmt.Errorf("its answer is a %s %s, want a %s CredentialProviderResponse", answer.APIVersion, answer.Kind, p.spec.APIVersion)
	}
	return answer, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	const most = 200
	if len(line) > most {
		return line[:most] + "..."
	}
	return line
}
