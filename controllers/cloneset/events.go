package cloneset

import (
	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func (r *Reconciler) normal(set *kruise.CloneSet, reason, message string) {
	r.events.Event(set, corev1.EventTypeNormal, reason, message)
}

func (r *Reconciler) warn(set *kruise.CloneSet, reason, message string) {
	r.events.Event(set, corev1.EventTypeWarning, reason, message)
}
