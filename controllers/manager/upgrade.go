// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/kubeversion"
)

// requiredGroups are the APIs of Kubernetes that the manager requires.
func requiredGroups() []string {
	return []string{
		"admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1", "apps/v1", "authentication.k8s.io/v1", "authorization.k8s.io/v1",
		"batch/v1", "coordination.k8s.io/v1", "policy/v1",
	}
}

// CheckUpgrade fails if the API server lacks something that the manager requires. The chart runs it from the new image, with the flags that
// its manager will have, before an upgrade changes anything.
func CheckUpgrade(ctx context.Context, config *rest.Config) error {
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	server, err := asked.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	wrong := []error{kubeversion.CheckSupported(server)}
	for _, group := range requiredGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := asked.ServerResourcesForGroupVersion(group)
		switch {
		case apierrors.IsNotFound(err):
			wrong = append(wrong, fmt.Errorf("the API server does not serve %s", group))
		case err != nil:
			return fmt.Errorf("asking the API server for %s: %w", group, err)
		}
	}
	return errors.Join(wrong...)
}
