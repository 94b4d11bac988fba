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

// Soon is the delay before an object is read again that another client has written to.
const Soon = raceDelay

// ReconcileResult is the result of a round of an object that is to be repeated after a delay; 0 for when something
// changes. A conflict is no failure unless many rounds in a row meet one, see LoseRace: the object is read again soon. An object that is gone
// needs nothing more. That another object is not found is an error like any other, and so is one beside a
// conflict. The delay stands beside errors: a Retrier keeps it.
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

// saysOnly reports whether an error, or each of those that it joins, is an answer of the API server that is one.
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
// object that it has not found.
func isNotFound(o client.Object, answer apierrors.APIStatus) bool {
	status := answer.Status()
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: reflect.TypeOf(o).Elem().Name()})
	return status.Reason == metav1.StatusReasonNotFound && status.Details != nil && status.Details.Name == o.GetName() && status.Details.Kind == resource.Resource
}
