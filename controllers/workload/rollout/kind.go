// SPDX-License-Identifier: Apache-2.0

// Package rollout is the loop that controllers of workloads share. It builds facts of a
// workload and its pods, evaluates the rollout points, moves the pods that plan, rank and
// clamp allow, and explains the decisions. A kind of workload is an adapter.
//
// Data flows in one direction: Decisions are made from Facts, and an Outcome is the result
// of carrying out Decisions. No step changes the data of an earlier one.
package rollout

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Kind adapts a kind of workload to the Controller.
type Kind interface {
	// WorkloadType describes the kind.
	WorkloadType() Type
	// ReadSpec reads the spec of a workload. An error ends the round.
	ReadSpec(workload client.Object) (Spec, error)
	// ResolveTemplates finds the revisions of a workload, and creates the revision of its template
	// if there is none.
	ResolveTemplates(ctx context.Context, r *Round) (Templates, error)
	// DeletionAsked reports whether a user requested the deletion of a pod, by
	// a label or by the workload's spec.
	DeletionAsked(workload client.Object, pod *corev1.Pod) bool
	// ComputeDifference computes how many pods are to be moved now.
	ComputeDifference(f *Facts) UpdateDelta
	// ScalePods creates and deletes pods. If acted is true, the round moves no pods: pods are moved to another revision
	// only in a round that neither deleted pods nor prepared deletions (CS-04). Pods that it created are
	// among the facts of the rest of the round. If they are to become available first, acted is true.
	ScalePods(ctx context.Context, r *Round, f *Facts) (acted bool, err error)
	// RecreatePod replaces a pod that cannot be, or is not to be, changed in place.
	RecreatePod(ctx context.Context, r *Round, f *Facts, pod *facts.Pod) error
	// ReportStatus writes the status, and records events of the changes.
	ReportStatus(ctx context.Context, r *Round, f *Facts, res Result) error
	// TruncateHistory deletes old revisions that nothing uses. It is called after ReportStatus, also if the round or
	// ReportStatus failed. Otherwise each edit of a workload that always fails would leave one more revision. failed reports whether either failed.
	TruncateHistory(ctx context.Context, r *Round, f *Facts, failed bool) error
}

// Type describes a kind of workload.
type Type struct {
	// GroupVersionKind is used in the owner references of pods; its Kind is the Kind of
	// the subjects of decisions.
	schema.GroupVersionKind
	// New makes an empty object, and NewList an empty list.
	New     func() client.Object
	NewList func() client.ObjectList
	// Status returns a pointer to the status of an object.
	Status func(client.Object) any
	// CurrentRevision returns a pointer to the field of the status with the revision before the
	// rollout. It is nil for kinds whose status has no such field.
	CurrentRevision func(client.Object) *string
	// Workloads returns the workloads that a pod belongs to. Beside an error it returns those that it found. It is nil for kinds that
	// own their pods, which are found by their owner reference.
	Workloads func(context.Context, *corev1.Pod) ([]Reference, error)
	// Adopts reports whether a workload adopts a pod that no controller owns and that its selector
	// matches. Kinds with Adopts also adopt ControllerRevisions that the selector matches. It is nil for
	// kinds that adopt nothing, such as CloneSets (CS-16).
	Adopts func(workload client.Object, pod *corev1.Pod) bool
	// Lists returns the option with which the pods of a workload are listed, for kinds that do not own their
	// pods. If it is nil, Spec.Selector is used.
	Lists func(client.Object) client.ListOption
	// NodeOf returns the node that a pod is on or is to be on, for kinds that put a pod on each
	// node. For these kinds the facts include the node, and pods are sorted by node, the last name first. A change of a
	// node makes all workloads of the kind be reconciled. It is nil for other kinds.
	NodeOf func(*corev1.Pod) string
	// PlainUpdates is true for kinds whose updates in place change no lifecycle state.
	PlainUpdates bool
	// Ordinals is true for kinds that number their pods: the numbers are facts.
	Ordinals bool
	// Events are the messages of the events about pods; the zero value
	// means those of CloneSets.
	Events EventTexts
	// Memory returns what the kind itself keeps of a workload between rounds; it may be
	// nil. Losing it must change no decision.
	Memory func() any
	// Owned are further kinds of objects that workloads of this kind own: an event of such an object makes its
	// workload be reconciled.
	Owned []client.Object
	// Related are further objects that workloads of this kind do not own.
	Related []RelatedObject
}

// RelatedObject is a kind of object whose events make workloads be reconciled.
type RelatedObject struct {
	Object client.Object
	// Workloads returns requests for the workloads to reconcile for an object.
	Workloads reconcile.FindFunc
	// Events selects the events that matter; all if it is nil.
	Events predicate.Predicate
}

// KindWithSharedPods is a Kind whose pods belong to other workloads: it does not own them, and changes only a part of
// them. Their lifecycle and their other in-place updates are left to their owners.
type KindWithSharedPods interface {
	Kind
	// FilterPods returns those of the listed pods that belong to the workload.
	FilterPods(ctx context.Context, r *Round, pods []*corev1.Pod) ([]*corev1.Pod, error)
	// ResolvePodCounts completes the numbers of the spec that depend on the pods, such as percentages.
	ResolvePodCounts(workload client.Object, spec *Spec, pods []*corev1.Pod)
	KindWithCandidateFilter
	// IsAvailable reports whether the workload's part of a pod is available.
	IsAvailable(workload client.Object, p *facts.Pod) bool
}

// KindWithNodeCounts is a Kind whose numbers depend on more than the workload, such as on nodes.
type KindWithNodeCounts interface {
	// ResolveSpec completes the spec. An error ends the round.
	ResolveSpec(ctx context.Context, r *Round, spec *Spec) error
}

// EventTexts are the messages of events about a pod. The arguments are the names of the workload and of the pod.
type EventTexts struct {
	Created, Deleted func(workload, pod string) string
	// DeleteFailed has the error at the end.
	DeleteFailed func(workload, pod string, err error) string
}

// cloneSetTexts are the messages of CloneSets.
func cloneSetTexts() EventTexts {
	return EventTexts{
		Created: func(_, pod string) string { return fmt.Sprintf(kruise.SuccessfulCreateMessage, pod) },
		Deleted: func(_, pod string) string { return fmt.Sprintf(kruise.SuccessfulDeleteMessage, pod) },
		DeleteFailed: func(_, pod string, err error) string {
			return fmt.Sprintf("failed to delete pod %s: %v", pod, err)
		},
	}
}

// KindWithCandidateFilter is a Kind that allows only some of its pods to be moved, whatever a policy answers.
type KindWithCandidateFilter interface {
	// MovableFilter returns which pods may be moved; the others are no candidates. The Difference of f
	// has not been computed yet.
	MovableFilter(r *Round, f *Facts) func(*facts.Pod) bool
}

// Reference names a workload.
type Reference struct {
	types.NamespacedName
	UID types.UID
}

// Spec is the spec of a workload, in numbers of pods.
type Spec struct {
	Replicas int
	Selector labels.Selector
	Strategy points.Strategy
	// Terms are the terms of the priority strategy.
	Terms facts.Terms
	// MinReady is how long a pod has to be ready before it is available.
	MinReady time.Duration
	// Lifecycle has the hooks of the pods; nil if there are none.
	Lifecycle *kruise.Lifecycle
	// GracePeriodSeconds is how long a pod is out of its services before its images
	// change.
	GracePeriodSeconds int32
	// Found is what ResolveSpec found, for the kind itself.
	Found any
	// Invalid is the error of a number that cannot be read and counts as 0. It is usually nil, since
	// admission refuses such a workload.
	Invalid error
}

// Templates are the two revisions of a rollout, and the revisions of pods.
type Templates interface {
	// CurrentRevision and UpdateRevision are the names of the two revisions.
	CurrentRevision() string
	UpdateRevision() string
	// PodRevision is the revision that a pod records, "" if it records none.
	PodRevision(pod *corev1.Pod) string
	// HasRevision reports whether a pod has the revision with a name.
	HasRevision(pod *corev1.Pod, name string) bool
	// CompareRevisions returns the differences between two revisions.
	CompareRevisions(from, to string) (Comparison, error)
	// LabelValue is the value of the label of pods of a revision.
	LabelValue(name string) string
}

// Comparison has the differences between two revisions.
type Comparison struct {
	// Known is false when one of the two is gone from history.
	Known bool
	// Diff is the difference between the pod templates.
	Diff                      inplace.Difference
	QoSChanged, ClaimsChanged bool
	// RestartRequested is true when the new template asks for new pods.
	RestartRequested bool
	// EnvRefresh names the containers whose env reads changed metadata and whose image
	// does not change.
	EnvRefresh []string
}

// UpdateDelta is how many pods are to be moved, and the bounds for that (CS-01).
type UpdateDelta struct {
	// Update is how many pods to move to the update revision; a negative number of pods moves back.
	Update int
	// MaxUnavailable is how many pods may be unavailable during the update.
	MaxUnavailable int
	// Settled is true when no pod of the current revision has to be moved.
	Settled bool
	// Unavailable is how much of MaxUnavailable is used up before any pod is moved, for kinds
	// for which not every unavailable pod counts; nil for all others.
	Unavailable *selection.Unavailable
	// Missing counts the pods that do not exist. They use up MaxUnavailable as existing unavailable
	// pods do. It is nil for kinds whose MaxUnavailable excludes them already.
	Missing *selection.Unavailable
	// MaxRecreated bounds how many pods may be unavailable when a pod is recreated: scaling would not
	// create one more than these. 0 means no bound.
	MaxRecreated int
	// UnavailableBefore counts the unavailable pods that scaling handles before it creates a pod again.
	// Only kinds with MaxRecreated set it.
	UnavailableBefore func(*facts.Pod) int
	// Condemned reports which pods no replica needs any more: they do not count as unavailable.
	// It is nil for kinds whose pods can replace each other.
	Condemned func(*facts.Pod) bool
}

// OnDelete is the strategy with which pods are updated only when they are deleted.
const OnDelete = "OnDelete"
