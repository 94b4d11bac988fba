// SPDX-License-Identifier: Apache-2.0

// Package match describes which pods concern a step of the webhook of pods, in the terms of webhook configurations. Each
// step defines its match beside its code. The API server evaluates the matches, and sends the webhook only pods that
// concern a step.
package match

import admissionv1 "k8s.io/api/admissionregistration/v1"

// Namespaces are the namespaces that a step acts in.
type Namespaces int

const (
	// All namespaces.
	All Namespaces = iota
	// WithBudgets are the namespaces that have PodUnavailableBudgets.
	WithBudgets
	// WithSidecars are the namespaces of the pods that SidecarSets may select. Separate conditions select these
	// pods.
	WithSidecars
	// WithSpreads are the namespaces that have WorkloadSpreads.
	WithSpreads
	// WithPersistentPodStates are the namespaces that have PersistentPodStates.
	WithPersistentPodStates
)

// Created describes pods that are created, which concern a mutating step.
type Created struct {
	// Name is a short name of the step, for an entry of the webhook configuration that only this step needs.
	Name       string
	Namespaces Namespaces
	// Conditions must all be true; without any, all pods of the namespaces concern the step.
	Conditions []admissionv1.MatchCondition
}

// Stored describes requests about pods that exist, which concern a validating step.
type Stored struct {
	// Operations are operations of package decision: Delete, Evict, Update, Resize.
	Operations []string
	Namespaces Namespaces
	// Conditions are CEL expressions that must all be true. The API server does not evaluate them for evictions, whose
	// object is not the pod.
	Conditions []string
}
