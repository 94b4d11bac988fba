// SPDX-License-Identifier: Apache-2.0

// Package rollout has the decision points of rollouts: how a pod is changed, how far a
// rollout goes, in which order, and how many pods are created and deleted.
package rollout

import "github.com/regatta-sh/regatta/engine/decision"

// Workload is the part of every rollout point's input that is about the workload
// itself. It changes only when a person or a tool changes the object, so that
// answers may be remembered for as long as it stays equal.
type Workload struct {
	// Kind of the workload, such as CloneSet.
	Kind string `json:"kind"`
	// Namespace it is in.
	Namespace string `json:"namespace"`
	// Name of the workload.
	Name string `json:"name"`
	// UID of the object; another one of the same name has another.
	UID string `json:"uid"`
	// Replicas are those that its spec asks for.
	Replicas int `json:"replicas"`
	// Labels of the object; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the object, but for what kubectl apply notes there, and what
	// begins with deployment.kubernetes.io/.
	Annotations map[string]string `json:"annotations,omitempty"`
	// NamespaceLabels are the labels of the namespace; there are none if it has none, and of a
	// cluster-scoped workload.
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	// MissingFacts are the facts of the workload that could not be read. Rules of users are not evaluated
	// while there are any: the strict fallback of the point answers.
	MissingFacts []decision.MissingFact `json:"missingFacts,omitempty"`
}

// Strategy is the update strategy with every percentage resolved to a number
// of pods (A-11; rounding is never a policy's business).
type Strategy struct {
	// Type is RollingUpdate or OnDelete.
	Type string `json:"type"`
	// Policy is ReCreate, InPlaceIfPossible or InPlaceOnly.
	Policy string `json:"policy"`
	// Partition is the number of pods kept at the current revision.
	Partition int `json:"partition"`
	// MaxUnavailable is how many pods may be unavailable at a time.
	MaxUnavailable int `json:"maxUnavailable"`
	// MaxSurge is how many pods there may be beyond replicas.
	MaxSurge int `json:"maxSurge"`
	// Paused is true while the rollout is paused.
	Paused bool `json:"paused"`
	// Ordered is true when pods are updated by their ordinals, the highest first, whatever
	// their priority.
	Ordered bool `json:"ordered,omitempty"`
	// ScaleMaxUnavailable bounds creation; MaxInt32 when unset.
	ScaleMaxUnavailable int `json:"scaleMaxUnavailable"`
	// Weights has the weight of each weightPriority term, in order.
	Weights []int `json:"weights,omitempty"`
	// OrderKeys has the key of each orderPriority term, in order.
	OrderKeys []string `json:"orderKeys,omitempty"`
	// Scatter has the scatter terms, in order.
	Scatter []ScatterTerm `json:"scatter,omitempty"`
}

// ScatterTerm is a label whose pods are spread over the whole rollout.
type ScatterTerm struct {
	// Key of the label.
	Key string `json:"key"`
	// Value of the label.
	Value string `json:"value"`
}

// Revisions names the two template revisions a rollout goes between.
type Revisions struct {
	// Current is the revision that the rollout goes away from.
	Current string `json:"current"`
	// Update is the revision of the template as it is now.
	Update string `json:"update"`
}

// Counts are pods, by what they are. Pods that are terminating or finished are
// not counted at all.
type Counts struct {
	// Total are all that count.
	Total int `json:"total"`
	// Ready are those that are running and ready.
	Ready int `json:"ready"`
	// Available are those that were ready for minReadySeconds.
	Available int `json:"available"`
	// Updated are those at the update revision.
	Updated int `json:"updated"`
	// UpdatedReady are those of them that are ready.
	UpdatedReady int `json:"updatedReady"`
	// UpdatedAvail are those of them that are available.
	UpdatedAvail int `json:"updatedAvailable"`
	// Unavailable are those that are not available.
	Unavailable int `json:"unavailable"`
	// PreparingDelete are those in the lifecycle state PreparingDelete.
	PreparingDelete int `json:"preparingDelete"`
	// SpecifiedDelete are those that a user asked to delete.
	SpecifiedDelete int `json:"specifiedDelete"`
	// Terminating are those on their way out, which none of the others counts.
	Terminating int `json:"terminating"`
}

// Group counts the pods of one group, such as one zone.
type Group struct {
	// Total are all pods of the group.
	Total int `json:"total"`
	// Updated are those at the update revision.
	Updated int `json:"updated"`
	// Unavailable are those that are not available.
	Unavailable int `json:"unavailable"`
}
