// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// CreateError is an error of a create. No other client can have written an object
// that does not exist yet, so a 404 or a 409 for a create, for
// instance by a webhook, is no lost race.
type CreateError struct{ Err error }

func (e *CreateError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *CreateError) Unwrap() error { return e.Err }

// persistentError is a conflict that occurred in many rounds in a row. Races are lost once or
// twice; a webhook that answers 404 or 409 refuses each time.
type persistentError struct{ error }

// Unwrap returns the cause.
func (e *persistentError) Unwrap() error { return e.error }

// IsConflict reports whether an error is nothing but lost races.
func IsConflict(err error) bool {
	switch err.(type) {
	case nil, *CreateError, *persistentError:
		return false
	}
	return everyError(err, IsConflict, func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) })
}

// onlyCreates reports whether an error is nothing but creates that failed.
func onlyCreates(err error) bool {
	if _, ok := err.(*CreateError); ok || err == nil {
		return ok
	}
	return everyError(err, onlyCreates, func(error) bool { return false })
}

// everyError reports whether one is true for all errors that an error joins, or for the error that it wraps. If it
// does neither, the result is that of leaf.
func everyError(err error, one, leaf func(error) bool) bool {
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

// giveUpRacing turns the conflicts of a round into failures, and records events of them.
func (r *Round) giveUpRacing(err error) error {
	give := func(e *PhaseError) error {
		r.RecordWarning(e.Phase, fmt.Sprintf("tried %d times: %s", requeue.MostLostRaces+1, OneLine(e.Error())))
		return &PhaseError{e.Phase, &persistentError{e.Err}}
	}
	switch e := err.(type) {
	case *PhaseError:
		return give(e)
	case interface{ Unwrap() []error }:
		var all []error
		for _, part := range e.Unwrap() {
			all = append(all, r.giveUpRacing(part))
		}
		return errors.Join(all...)
	}
	return &persistentError{err}
}

// OneLine joins the lines of an error, for a condition or an event, and bounds it.
func OneLine(s string) string { return message.Shorten(s) }
