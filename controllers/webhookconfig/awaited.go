// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
)

// PendingObjects looks up the objects for which pods are sent although caches may not have them yet.
type PendingObjects struct {
	// Live reads the configuration from the API server.
	Live client.Reader

	mu     sync.Mutex
	token  string
	claims []podscope.PendingSelector
}

// ReadClaims returns the claims of the configuration that a pod was sent by, or of a newer one: the objects of claims that are missing
// there have long been in the caches. The configuration is read once for each token.
func (a *PendingObjects) ReadClaims(ctx context.Context, token string) ([]podscope.PendingSelector, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if token == "" || token == a.token {
		return a.claims, nil
	}
	m := &admissionv1.MutatingWebhookConfiguration{}
	if err := a.Live.Get(ctx, client.ObjectKey{Name: ConfigurationName}, m); err != nil {
		return nil, fmt.Errorf("reading MutatingWebhookConfiguration %s: %w", ConfigurationName, err)
	}
	claims, err := podscope.ReadClaims(m)
	if err != nil {
		return nil, err
	}
	a.token, a.claims = podscope.ClaimsToken(claims), claims
	return claims, nil
}
