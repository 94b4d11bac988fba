// SPDX-License-Identifier: Apache-2.0

package openkruise

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Put creates objects on an API server as they were, with their status and with owners by
// the UIDs that they have there. Owners are created first. Owners that are not among the
// objects are left out. An object whose name exists already is taken to be the same one.
func Put(t testing.TB, c client.Client, objects []client.Object) {
	t.Helper()
	uids, left := map[types.UID]types.UID{}, objects
	for len(left) > 0 {
		var later []client.Object
		for _, o := range left {
			if waits(o, left) {
				later = append(later, o)
				continue
			}
			old, fresh := o.GetUID(), o.DeepCopyObject().(client.Object)
			var owners []metav1.OwnerReference
			for _, ref := range o.GetOwnerReferences() {
				if uid, ok := uids[ref.UID]; ok {
					ref.UID = uid
					owners = append(owners, ref)
				}
			}
			fresh.SetOwnerReferences(owners)
			fresh.SetUID("")
			fresh.SetResourceVersion("")
			uids[old] = create(t, c, fresh, o)
		}
		if len(later) == len(left) {
			t.Fatalf("%d objects own one another", len(left))
		}
		left = later
	}
}

// waits is true while an owner of the object is still to be created.
func waits(o client.Object, left []client.Object) bool {
	for _, ref := range o.GetOwnerReferences() {
		for _, other := range left {
			if other.GetUID() == ref.UID && other.GetUID() != o.GetUID() {
				return true
			}
		}
	}
	return false
}

// created creates an object, as soon as its kind is served: Helm does not wait for CRDs.
func created(ctx context.Context, c client.Client, o client.Object) (err error) {
	_ = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err = c.Create(ctx, o)
		return !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err), nil
	}) // err says what it was
	return err
}

// create makes an object and then writes the status that it had.
func create(t testing.TB, c client.Client, o, had client.Object) types.UID {
	t.Helper()
	ctx := context.Background()
	status := had.DeepCopyObject().(client.Object)
	if err := created(ctx, c, o); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	} else if err != nil {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		return o.GetUID()
	}
	status.SetUID(o.GetUID())
	status.SetResourceVersion(o.GetResourceVersion())
	status.SetOwnerReferences(o.GetOwnerReferences())
	if err := c.Status().Update(ctx, status); err != nil && !apierrors.IsNotFound(err) { // some kinds have no status
		t.Fatalf("writing the status of %T %s: %v", o, o.GetName(), err)
	}
	return o.GetUID()
}
