// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/controllers/protection"
)

// confirmFor is how long reading the object may take.
const confirmFor = time.Second

// isDeletionConfirmed reports whether the API server has the object that a request wants to delete, so
// that the deletion counts. Any client that reaches the webhook can post a review, and forged ones
// would use up the deletions that a rule allows in a minute.
//
// A deletion also counts if the object cannot be read, for example because the manager may not get
// objects of its kind: an error must not disable a limit.
func (h *Handler) isDeletionConfirmed(ctx context.Context, asked *protection.Asked) bool {
	if !asked.RemovesObject() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, confirmFor)
	defer cancel()
	o := asked.Object
	resource := schema.GroupVersionResource{Group: o.Group, Version: o.Version, Resource: o.Resource}
	live, err := h.Metadata.Resource(resource).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false
	case err != nil:
		ctrl.LoggerFrom(ctx).Info("A deletion counts although the object could not be read", "resource", resource, "namespace", o.Namespace, "name", o.Name, "reason", err.Error())
		return true
	}
	return string(live.UID) == o.UID && live.DeletionTimestamp == nil
}
