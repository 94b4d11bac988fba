// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the base of the controllers: what the manager gives each of them, how an
// object is read, reconciled, finalized and forgotten, how a failure is reported, and how a change
// of policies or an error brings the next round.
package reconcile

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type (
	// Request is that of controller-runtime: the name of an object to reconcile.
	Request = ctrl.Request
	// Result is that of controller-runtime: when a request is reconciled again.
	Result = ctrl.Result
	// Reconciler is that of controller-runtime.
	Reconciler = reconcile.Reconciler
)

// TerminalError wraps an error that another round would meet again: it is counted and logged, and
// the object is reconciled when it changes.
func TerminalError(err error) error { return reconcile.TerminalError(err) }
