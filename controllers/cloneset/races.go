package cloneset

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// createError is an error of a create. Nothing that does not exist yet can have been
// written by another client first: a 404 or a 409 from there, by a webhook for
// instance, is no lost race.
type createError struct{ error }

// Unwrap gives the cause.
func (e *createError) Unwrap() error { return e.error }

// persistentError is a conflict that was met again and again. Races are lost once or
// twice; a webhook that answers 404 or 409 refuses each time.
type persistentError struct{ error }

// Unwrap gives the cause.
func (e *persistentError) Unwrap() error { return e.error }

// conflict says whether an error is nothing but lost races.
func conflict(err error) bool {
	switch err.(type) {
	case nil, *createError, *persistentError:
		return false
	}
	return every(err, conflict, func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) })
}

// onlyCreates says whether an error is nothing but creates that failed.
func onlyCreates(err error) bool {
	if _, ok := err.(*createError); ok || err == nil {
		return ok
	}
	return every(err, onlyCreates, func(error) bool { return false })
}

// every asks one of all errors that an error joins, or of the one that it wraps; leaf
// is asked of an error that has none.
func every(err error, one, leaf func(error) bool) bool {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if !one(part) {
				return false
			}
		}
		return true
	case interface{ Unwrap() error }:
		return one(e.Unwrap())
	}
	return leaf(err)
}

// A round that lost a race is repeated soon, for what the other client wrote is on its
// way: after 50 ms, and after twice as long each time. The sixth in a row is a failure:
// it is reported, and repeated as any other.
const (
	raceDelay = 50 * time.Millisecond
	mostRaces = 5
)

// lost has a round repeated that lost a race.
func (m *memory) lost(ctx context.Context, err error) (reconcile.Result, error) {
	delay := raceDelay << m.lostRaces
	m.lostRaces++
	ctrl.LoggerFrom(ctx).V(4).Info("lost a race for an object", "error", err.Error(), "again", delay)
	return reconcile.Result{RequeueAfter: delay}, nil
}

// persists says whether a round ended because of conflicts as each of those before did.
// Any other end starts the count again.
func (m *memory) persists(err error) bool {
	if !conflict(err) {
		m.lostRaces = 0
	}
	return m.lostRaces >= mostRaces
}

// giveUpRacing makes failures of the conflicts of a round, and tells them by events.
func (r *Reconciler) giveUpRacing(w *world, err error) error {
	give := func(e *phaseError) error {
		r.warn(w.set, string(e.condition), fmt.Sprintf("tried %d times: %s", w.memory.lostRaces+1, oneLine(e.Error())))
		return &phaseError{e.condition, &persistentError{e.err}}
	}
	switch e := err.(type) {
	case *phaseError:
		return give(e)
	case interface{ Unwrap() []error }:
		var all []error
		for _, part := range e.Unwrap() {
			all = append(all, r.giveUpRacing(w, part))
		}
		return errors.Join(all...)
	}
	return &persistentError{err}
}
