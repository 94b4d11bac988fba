// SPDX-License-Identifier: Apache-2.0

// Package step is the frame of controllers that read one object at a time and take it a step
// further.
package step

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// Soon is the delay before an object is read again that another client has written to.
const Soon = 50 * time.Millisecond

// ReconcileResult is the result of a step of an object that is to be repeated after a delay; 0 for when something
// changes. A conflict is no failure unless many rounds in a row meet one, see requeue.LoseRace: the object is read again soon. An object that is gone
// needs nothing more. That another object is not found is an error like any other, and so is one beside a
// conflict. The delay stands beside errors: a requeue.Retrier keeps it.
func ReconcileResult(ctx context.Context, o client.Object, after time.Duration, err error) (reconcile.Result, error) {
	switch {
	case saysOnly(err, func(status apierrors.APIStatus) bool { return isNotFound(o, status) }):
		return reconcile.Result{}, nil
	case saysOnly(err, func(status apierrors.APIStatus) bool { return status.Status().Reason == metav1.StatusReasonConflict }):
		if again, ok := requeue.LoseRace(ctx, err); ok {
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

// Frame reads the objects of one kind.
type Frame[T client.Object] struct {
	// Kind names the objects in errors.
	Kind string
	// New makes an empty object.
	New func() T
	// Take takes an object a step further, and returns when to look at it again; 0 for when
	// something changes.
	Take func(context.Context, T) (time.Duration, error)
	// Ending does the same for an object that is being deleted. Nothing happens to these if it
	// is nil.
	Ending func(context.Context, T) (time.Duration, error)
	// Report has the status of the object say how Take ended: with an error, or nil where it did its work. It is not called for a lost
	// race, nor for an object that is gone. It may be nil.
	Report func(context.Context, T, error) error
	// Gone forgets an object that does not exist any more. It may be nil.
	Gone func(types.NamespacedName)
}

// Reconcile takes the object of a request a step further, as the reader shows it.
func (f Frame[T]) Reconcile(ctx context.Context, reader client.Reader, req reconcile.Request) (reconcile.Result, error) {
	o := f.New()
	err := reader.Get(ctx, req.NamespacedName, o)
	switch {
	case apierrors.IsNotFound(err):
		if f.Gone != nil {
			f.Gone(req.NamespacedName)
		}
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading %s %s: %w", f.Kind, req, err)
	case o.GetDeletionTimestamp() == nil:
		return f.takeAndReport(ctx, o)
	case f.Ending != nil:
		after, err := f.Ending(ctx, o)
		return ReconcileResult(ctx, o, after, err)
	}
	return reconcile.Result{}, nil
}

// takeAndReport takes an object a step further, and reports how that ended.
func (f Frame[T]) takeAndReport(ctx context.Context, o T) (reconcile.Result, error) {
	after, err := f.Take(ctx, o)
	result, failed := ReconcileResult(ctx, o, after, err)
	if f.Report == nil || err != nil && failed == nil {
		return result, failed
	}
	unreported := f.Report(ctx, o, failed)
	switch {
	case unreported == nil:
		return result, failed
	case failed == nil:
		return ReconcileResult(ctx, o, after, unreported)
	}
	return result, fmt.Errorf("%w; and reporting that: %v", failed, unreported) //nolint:errorlint // the first error says what to do
}

// AllObjects wants every object of a list.
func AllObjects[T client.Object](T) bool { return true }

// ListRequests has one request for each object of a list that is wanted. It is for events that
// concern all objects of a kind, such as that other policies decide. An error is logged, since
// a handler of events cannot return it.
func ListRequests[T client.Object](ctx context.Context, reader client.Reader, list client.ObjectList, want func(T) bool) (out []reconcile.Request) {
	err := reader.List(ctx, list, client.UnsafeDisableDeepCopy)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if o, ok := item.(T); ok && want(o) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
			return nil
		})
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the objects of a kind after an event that concerns all of them", "list", fmt.Sprintf("%T", list))
	}
	return out
}
