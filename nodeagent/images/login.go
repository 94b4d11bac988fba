// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"

	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/redact"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/keyring"
)

// loginsFor returns the logins of the pull secrets that match an image, in the order of the kubelet, and then those of the node.
// If the pull fails, its message has the errors of secrets that could not be read.
func (a *Agent) loginsFor(ctx context.Context, image string, secrets []kruise.ReferenceObject) (out []*cri.Login, wrong []error) {
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
	keys := &keyring.Keyring{}
	for _, ref := range secrets {
		secret := &corev1.Secret{}
		at := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		if err := a.secrets.Get(ctx, at, secret); err != nil {
			wrong = append(wrong, fmt.Errorf("reading pull secret %s: %w", at, err))
			continue
		}
		if err := keys.AddSecret(secret); err != nil {
			wrong = append(wrong, fmt.Errorf("reading pull secret %s: %w", at, err))
		}
	}
	out, err := keys.LoginsFor(image)
	if err != nil {
		wrong = append(wrong, err)
	}
	return out, wrong
}

// concealLogin removes from the error of a pull what may repeat its login: users who may not read the Secret may read messages
// about images.
func concealLogin(err error, reference string, login *cri.Login) error {
	if err == nil || login == nil {
		return err
	}
	contents := redact.ContentsOf(&corev1.Secret{StringData: map[string]string{
		"password": login.Password, "auth": login.Auth, "identitytoken": login.IdentityToken, "registrytoken": login.RegistryToken,
	}})
	if !contents.AppearsIn(err.Error()) {
		return err
	}
	return fmt.Errorf("pulling image %s: %s: the message of the runtime is left out, since it may repeat the login", reference, status.Code(err))
}
