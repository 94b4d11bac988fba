package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// CheckUninstall fails while there are workloads whose pods would go with the
// CRDs (PL-05). The chart runs it before an uninstall.
func CheckUninstall(ctx context.Context, config *rest.Config) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	var left []string
	for _, kind := range []string{"CloneSet", "StatefulSet", "DaemonSet"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: v1beta1.GroupName, Version: "v1beta1", Kind: kind + "List"})
		err := c.List(ctx, list, client.Limit(1))
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err): // that CRD is not installed
		case err != nil:
			return fmt.Errorf("listing %ss: %w", kind, err)
		case len(list.Items) > 0:
			left = append(left, fmt.Sprintf("there still exists some %ss in the cluster", strings.ToLower(kind)))
		}
	}
	if len(left) > 0 {
		return errors.New(strings.Join(left, "; "))
	}
	return nil
}
