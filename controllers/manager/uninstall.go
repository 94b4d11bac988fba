// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/kinds"
)

// CheckUninstall fails while there are workloads whose pods would go with the
// CRDs (PL-05). The chart runs it before an uninstall.
func CheckUninstall(ctx context.Context, config *rest.Config) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	var left []string
	for _, w := range kinds.Owners() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(w.GroupVersion().WithKind(w.Kind + "List"))
		err := c.List(ctx, list, client.Limit(1))
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err): // that CRD is not installed
		case err != nil:
			return fmt.Errorf("listing %ss: %w", w.Kind, err)
		case len(list.Items) > 0:
			left = append(left, fmt.Sprintf("there still exists some %ss in the cluster", strings.ToLower(w.Kind)))
		}
	}
	if len(left) > 0 {
		return errors.New(strings.Join(left, "; "))
	}
	return nil
}
