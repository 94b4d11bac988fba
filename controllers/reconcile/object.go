// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// ObjectFuncs are what a controller does with the objects of one kind.
type ObjectFuncs[T client.Object] struct {
	// Reconcile runs one round of an object. It returns when the next round begins if nothing
	// changes before; 0 is never.
	Reconcile func(context.Context, T) (time.Duration, error)
	// Finalize runs a round of an object that is being deleted, and returns the same. If it is nil, nothing
	// is done with these objects.
	Finalize func(context.Context, T) (time.Duration, error)
	// Status returns a pointer to the status of an object. Its condition FailedReconcile has the
	// error of the last round. If Status is nil, no condition is written.
	Status func(T) any
	// Summarize returns what the conditions of package kstatus say of an object, by its status. After a
	// round that succeeded, it is called if the status has FailedReconcile, and the summary is written as that
	// condition is removed. It is nil for a kind whose Reconcile calls failure.SetSummary before the
	// last write of each round.
	Summarize func(T) kstatus.Summary
	// Report reports how a round ended, with an error or nil, in place of the condition. It is not
	// called for a lost race, nor for an object that is gone. It may be nil.
	Report func(context.Context, T, error) error
	// Forget drops what is remembered of an object that no longer exists. It may be nil.
	Forget func(types.NamespacedName)
}

// NewObjectReconciler returns a Reconciler that reads each object with ReadObject of the Deps. d is the result of
// WithDefaults.
func NewObjectReconciler[T client.Object](d Deps, funcs ObjectFuncs[T]) Reconciler {
	if status := funcs.Status; status != nil && funcs.Report == nil {
		funcs.Report = func(ctx context.Context, o T, err error) error {
			switch {
			case err != nil:
				return failure.Write(ctx, d.Client, o, status, err, d.Now())
			case funcs.Summarize != nil:
				return failure.WriteSummary(ctx, d.Client, o, status, funcs.Summarize, d.Now())
			}
			return nil
		}
	}
	return &objectReconciler[T]{deps: d, funcs: funcs}
}

type objectReconciler[T client.Object] struct {
	deps  Deps
	funcs ObjectFuncs[T]
}

// Reconcile runs one round of the object that a request names.
func (r *objectReconciler[T]) Reconcile(ctx context.Context, req Request) (Result, error) {
	kind := reflect.TypeFor[T]().Elem()
	o, _ := reflect.New(kind).Interface().(T)
	err := r.deps.ReadObject(ctx, req.NamespacedName, o)
	switch {
	case apierrors.IsNotFound(err):
		if r.funcs.Forget != nil {
			r.funcs.Forget(req.NamespacedName)
		}
		return Result{}, nil
	case err != nil:
		return Result{}, fmt.Errorf("reading %s %s: %w", kind.Name(), req, err)
	case o.GetDeletionTimestamp() == nil:
		return r.runAndReport(ctx, o)
	case r.funcs.Finalize != nil:
		after, err := r.funcs.Finalize(ctx, o)
		return requeue.ReconcileResult(ctx, o, after, err)
	}
	return Result{}, nil
}

// runAndReport runs one round of an object, and reports how it ended.
func (r *objectReconciler[T]) runAndReport(ctx context.Context, o T) (Result, error) {
	after, err := r.funcs.Reconcile(ctx, o)
	result, failed := requeue.ReconcileResult(ctx, o, after, err)
	if r.funcs.Report == nil || err != nil && failed == nil {
		return result, failed
	}
	unreported := r.funcs.Report(ctx, o, failed)
	switch {
	case unreported == nil:
		return result, failed
	case failed == nil:
		return requeue.ReconcileResult(ctx, o, after, unreported)
	}
	return result, fmt.Errorf("%w; and reporting that: %v", failed, unreported) //nolint:errorlint // the first error says what to do
}
