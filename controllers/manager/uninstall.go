// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/kinds"
)

// CheckUninstall fails while objects exist whose pods would be deleted with the CRDs (PL-05). The
// chart runs it before an uninstall.
func CheckUninstall(ctx context.Context, config *rest.Config) error {
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	var left []string
	for _, r := range kinds.PodOwningResources() {
		list, err := c.Resource(r).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case apierrors.IsNotFound(err): // that CRD is not installed
		case err != nil:
			return fmt.Errorf("listing %s: %w", r.Resource, err)
		case len(list.Items) > 0:
			left = append(left, fmt.Sprintf("there still exists some %s in the cluster", r.Resource))
		}
	}
	if len(left) > 0 {
		return errors.New(strings.Join(left, "; "))
	}
	return nil
}
