// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/nodeagent/keyring"
)

// credentialsRole is the ClusterRole of the chart that allows to get secrets. The owners of the
// secrets of a namespace bind it there.
const credentialsRole = "kruise-bundle-credentials"

func (f *Fetcher) readSecret(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error) {
	what := "secret " + name.String()
	s := &corev1.Secret{}
	err := f.reader.Get(ctx, name, s)
	switch {
	case apierrors.IsNotFound(err):
		return nil, NotFoundError{what, "create it, or take it out of the source"}
	case apierrors.IsForbidden(err):
		return nil, ForbiddenError{what, fmt.Sprintf("let the manager get the secrets of the namespace: kubectl create rolebinding %s -n %s --clusterrole=%s --serviceaccount=%s:%s",
			credentialsRole, name.Namespace, credentialsRole, f.account.Namespace, f.account.Name)}
	case err != nil:
		return nil, UnavailableError{what, err}
	}
	return s, nil
}

// mostLogins is how many logins are tried. A registry may lock out a client that tries many, and all bundles share one client.
const mostLogins = 10

// findKeychains returns one keychain for each login in the pull secrets that matches a reference. They are tried in turn, as
// the kubelet does. If no login matches, the result is one anonymous keychain. left is how many more logins match but are
// not tried.
func (f *Fetcher) findKeychains(ctx context.Context, reference string, names []types.NamespacedName) (out []authn.Keychain, left int, err error) {
	keys := &keyring.Keyring{}
	for _, at := range names {
		s, err := f.readSecret(ctx, at)
		if err != nil {
			return nil, 0, err
		}
		key := map[corev1.SecretType]string{corev1.SecretTypeDockerConfigJson: corev1.DockerConfigJsonKey, corev1.SecretTypeDockercfg: corev1.DockerConfigKey}[s.Type]
		if len(s.Data[key]) == 0 {
			return nil, 0, ContentError{"secret " + at.String(), "is no pull secret: make it with kubectl create secret docker-registry"}
		}
		if err := keys.AddSecret(s); err != nil {
			return nil, 0, ContentError{"secret " + at.String(), "does not have the credentials of registries in its key " + key + ": " + err.Error() + "; make it with kubectl create secret docker-registry"}
		}
	}
	anonymous := []authn.Keychain{login{}}
	parsed, err := name.ParseReference(reference)
	if err != nil { // the pull reports the error
		return anonymous, 0, nil
	}
	logins, err := keys.LoginsFor(parsed.Context().Name())
	if err != nil || len(logins) == 0 {
		return anonymous, 0, nil
	}
	for _, l := range logins[:min(len(logins), mostLogins)] {
		out = append(out, login{registry: parsed.Context().RegistryStr(), as: authn.AuthConfig{
			Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken,
		}})
	}
	return out, len(logins) - len(out), nil
}

// login is a keychain with the credentials for one registry. The zero login is anonymous: the credentials of the
// manager's own machine are not used for bundles.
type login struct {
	registry string
	as       authn.AuthConfig
}

// Resolve implements authn.Keychain.
func (l login) Resolve(of authn.Resource) (authn.Authenticator, error) {
	if l.registry == "" || of.RegistryStr() != l.registry {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(l.as), nil
}

// newAuthorizer returns a function that adds the credentials of a secret to requests for the same
// scheme, host and port as the address, and to no others.
func (f *Fetcher) newAuthorizer(ctx context.Context, name types.NamespacedName, address *url.URL) (func(*http.Request), error) {
	s, err := f.readSecret(ctx, name)
	if err != nil {
		return nil, err
	}
	token, user, password := trimmedValue(s, "token"), trimmedValue(s, corev1.BasicAuthUsernameKey), trimmedValue(s, corev1.BasicAuthPasswordKey)
	basic := user != "" || password != ""
	var why error
	switch {
	case token != "" && basic:
		why = errors.New("has both token and username or password; it must have either")
	case token == "" && (user == "" || password == ""):
		why = errors.New("has no credentials: it needs the key token, or username and password")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		why = errors.New("has a token that cannot be sent: it has other characters than printable ASCII")
	}
	if why != nil {
		return nil, ContentError{"secret " + name.String(), why.Error()}
	}
	return func(req *http.Request) {
		if req.URL.Scheme != address.Scheme || !strings.EqualFold(req.URL.Host, address.Host) {
			return
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
			return
		}
		req.SetBasicAuth(user, password)
	}, nil
}

// trimmedValue is a value without the newline that editors and echo append.
func trimmedValue(s *corev1.Secret, key string) string {
	return strings.TrimRight(string(s.Data[key]), "\r\n")
}
