// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the base of the controllers: what the manager gives each of them, how an
// object is read, reconciled, finalized and forgotten, how a failure is reported, and how a change
// of policies or an error starts the next round.
package reconcile

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type (
	// Request is the type of controller-runtime: the name of an object to reconcile.
	Request = ctrl.Request
	// Result is the type of controller-runtime: when a request is reconciled again.
	Result = ctrl.Result
	// Reconciler is the type of controller-runtime.
	Reconciler = reconcile.Reconciler
)

// TerminalError wraps an error that would occur again in another round. It is counted and logged, and
// the object is reconciled only when it changes.
func TerminalError(err error) error { return reconcile.TerminalError(err) }
