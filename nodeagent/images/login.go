// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	kauth "github.com/google/go-containerregistry/pkg/authn/kubernetes"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/cri"
)

// logins are those of the pull secrets that are for the registry of the image, one secret
// after the other, and then those of the node. If the pull fails, its message has what could
// not be read.
func (a *Agent) logins(ctx context.Context, image string, secrets []kruise.ReferenceObject) (out []*cri.Login, wrong []error) {
	out, wrong = a.secretLogins(ctx, image, secrets)
	if a.credentials != nil {
		more, err := a.credentials(ctx, image)
		if err != nil {
			wrong = append(wrong, err)
		}
		out = append(out, more...)
	}
	return out, wrong
}

func (a *Agent) secretLogins(ctx context.Context, image string, secrets []kruise.ReferenceObject) (out []*cri.Login, wrong []error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	repository, err := name.NewRepository(image)
	if err != nil {
		return nil, []error{fmt.Errorf("reading the name of image %s: %w", image, err)}
	}
	for _, ref := range secrets {
		secret := &corev1.Secret{}
		if err := a.secrets.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
			wrong = append(wrong, fmt.Errorf("reading pull secret %s: %w", types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, err))
			continue
		}
		login, err := loginOf(ctx, secret, repository)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("reading pull secret %s: %w", client.ObjectKeyFromObject(secret), err))
		} else if login != nil {
			out = append(out, login)
		}
	}
	return out, wrong
}

// loginOf is what a secret has for a repository, nil if nothing.
func loginOf(ctx context.Context, secret *corev1.Secret, repository name.Repository) (*cri.Login, error) {
	keychain, err := kauth.NewFromPullSecrets(ctx, []corev1.Secret{*secret})
	if err != nil {
		return nil, err
	}
	authenticator, err := keychain.Resolve(repository)
	if err != nil || authenticator == authn.Anonymous {
		return nil, err
	}
	c, err := authenticator.Authorization()
	if err != nil {
		return nil, err
	}
	return &cri.Login{Username: c.Username, Password: c.Password, Auth: c.Auth, IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken}, nil
}
