// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Soon is the delay before an object that another client has written is read again.
const Soon = raceDelay

// ReconcileResult returns the result of a round of an object that is to be repeated after a delay; 0 means only when something
// changes. A conflict is no failure unless many rounds in a row end with one, see LoseRace: the object is read again soon. If the object is gone,
// nothing more is done. If another object is not found, that is an error like any other, and so is an error together with a
// conflict. The delay is also returned together with an error: a Retrier keeps it.
func ReconcileResult(ctx context.Context, o client.Object, after time.Duration, err error) (reconcile.Result, error) {
	switch {
	case saysOnly(err, func(status apierrors.APIStatus) bool { return isNotFound(o, status) }):
		return reconcile.Result{}, nil
	case saysOnly(err, func(status apierrors.APIStatus) bool { return status.Status().Reason == metav1.StatusReasonConflict }):
		if again, ok := LoseRace(ctx, err); ok {
			return reconcile.Result{RequeueAfter: again}, nil
		}
	}
	return reconcile.Result{RequeueAfter: after}, err
}

// saysOnly reports whether an error, or each of the errors that it joins, is an answer of the API server for which is returns true.
func saysOnly(err error, is func(apierrors.APIStatus) bool) bool {
	for err != nil {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			errs := joined.Unwrap()
			return len(errs) > 0 && !slices.ContainsFunc(errs, func(e error) bool { return !saysOnly(e, is) })
		}
		if status, ok := err.(apierrors.APIStatus); ok {
			return is(status)
		}
		err = errors.Unwrap(err)
	}
	return false
}

// isNotFound reports whether an answer says that an object is gone. An API server names the resource and the
// object that it did not find.
func isNotFound(o client.Object, answer apierrors.APIStatus) bool {
	status := answer.Status()
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: reflect.TypeOf(o).Elem().Name()})
	return status.Reason == metav1.StatusReasonNotFound && status.Details != nil && status.Details.Name == o.GetName() && status.Details.Kind == resource.Resource
}
