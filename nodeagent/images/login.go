// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/credentials"
	"github.com/regatta-sh/regatta/nodeagent/cri"
)

// logins are those of the pull secrets that are for an image, in the order of the kubelet, and then those of the node. If the
// pull fails, its message has what could not be read.
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
	keyring := &credentials.Keyring{}
	for _, ref := range secrets {
		secret := &corev1.Secret{}
		at := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		if err := a.secrets.Get(ctx, at, secret); err != nil {
			wrong = append(wrong, fmt.Errorf("reading pull secret %s: %w", at, err))
			continue
		}
		if err := keyring.Add(secret); err != nil {
			wrong = append(wrong, fmt.Errorf("reading pull secret %s: %w", at, err))
		}
	}
	out, err := keyring.Logins(image)
	if err != nil {
		wrong = append(wrong, err)
	}
	return out, wrong
}
