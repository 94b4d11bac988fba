// SPDX-License-Identifier: Apache-2.0

// Package rollout is the loop that controllers of workloads share: it makes facts of a
// workload and its pods, asks the rollout points, moves the pods that plan, rank and
// clamp allow, and explains what was decided. A kind of workload is an adapter.
//
// Values flow one way: Facts are made once, Decisions are made from them, and an Outcome
// from carrying these out. No step changes what an earlier one made.
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
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Kind adapts a kind of workload to the Controller.
type Kind interface {
	// WorkloadType describes the kind.
	WorkloadType() Type
	// ReadSpec reads what a workload asks for. An error ends the round.
	ReadSpec(workload client.Object) (Spec, error)
	// ResolveTemplates finds the revisions of a workload, and makes the one of its template
	// where there is none.
	ResolveTemplates(ctx context.Context, r *Round) (Templates, error)
	// DeletionAsked reports whether a pod is to be deleted because a user asked for it, by
	// a label or by the workload's spec.
	DeletionAsked(workload client.Object, pod *corev1.Pod) bool
	// ComputeDifference says how many pods are to be moved now.
	ComputeDifference(f *Facts) UpdateDelta
	// ScalePods creates and deletes pods. Acted ends the round: pods are moved to another revision
	// only in a round that deleted none and asked none to go (CS-04). Pods that it created are
	// facts of what follows; where they are to become available first, acted is true.
	ScalePods(ctx context.Context, r *Round, f *Facts) (acted bool, err error)
	// RecreatePod has a pod replaced that cannot be, or is not to be, changed in place.
	RecreatePod(ctx context.Context, r *Round, f *Facts, pod *facts.Pod) error
	// ReportStatus writes the status, and the events of what changed.
	ReportStatus(ctx context.Context, r *Round, f *Facts, res Result) error
	// TruncateHistory deletes old revisions that nothing uses. It comes after Report, also where the round or
	// Report failed, or each edit of a workload that always fails would leave one more. failed reports whether one did.
	TruncateHistory(ctx context.Context, r *Round, f *Facts, failed bool) error
}

// Type describes a kind of workload.
type Type struct {
	// GroupVersionKind is that of the owner references of its pods, and its Kind that of
	// the subjects of decisions.
	schema.GroupVersionKind
	// New makes an empty object, and NewList an empty list.
	New     func() client.Object
	NewList func() client.ObjectList
	// Status points to the status of an object.
	Status func(client.Object) any
	// CurrentRevision points to the revision that the status names as the one before the
	// rollout. It is nil for kinds whose status names none.
	CurrentRevision func(client.Object) *string
	// Workloads are those that a pod belongs to. It is nil for kinds that own their
	// pods: these are found by their owner reference.
	Workloads func(context.Context, *corev1.Pod) []Reference
	// Adopts reports whether a workload takes a pod that no controller owns and that its selector
	// matches. Kinds with it also adopt ControllerRevisions that the selector matches. It is nil for
	// kinds that adopt nothing, as CloneSets (CS-16).
	Adopts func(workload client.Object, pod *corev1.Pod) bool
	// Lists narrows the pods that are listed for a workload, for kinds that do not own their
	// pods; by Spec.Selector if it is nil.
	Lists func(client.Object) client.ListOption
	// NodeOf is the node that a pod is on or is to be on, for kinds that put a pod on each
	// node: the node is facts, the pods are by node, the last name first, and what changes a
	// node has all workloads of the kind reconciled. It is nil for other kinds.
	NodeOf func(*corev1.Pod) string
	// PlainUpdates is true for kinds whose updates in place change no lifecycle state.
	PlainUpdates bool
	// Ordinals is true for kinds that number their pods: the numbers are facts.
	Ordinals bool
	// Events are the texts of the events that tell what was done to a pod; the zero value
	// has those of CloneSets.
	Events EventTexts
	// Memory makes what the kind itself keeps of a workload between rounds; it may be
	// nil. Losing it must change no decision.
	Memory func() any
	// Owned are the further kinds of which its workloads own objects: their events have the
	// workload reconciled.
	Owned []client.Object
	// Related are further objects that its workloads do not own.
	Related []RelatedObject
}

// RelatedObject are objects whose events have workloads reconciled.
type RelatedObject struct {
	Object client.Object
	// Workloads names those that an object concerns.
	Workloads func(client.Object) []types.NamespacedName
	// Events are those that count; all if it is nil.
	Events predicate.Predicate
}

// KindWithSharedPods is a Kind whose pods belong to others: it does not own them, and changes a part of
// them only. It leaves their lifecycle and their other in-place updates to their owners.
type KindWithSharedPods interface {
	Kind
	// FilterPods leaves of pods that were listed those that belong to the workload.
	FilterPods(ctx context.Context, r *Round, pods []*corev1.Pod) ([]*corev1.Pod, error)
	// ResolvePodCounts completes the spec with what depends on the pods, such as percentages.
	ResolvePodCounts(workload client.Object, spec *Spec, pods []*corev1.Pod)
	KindWithCandidateFilter
	// NamespaceLabels are the labels of namespaces, by name. A namespace that is not there has none.
	NamespaceLabels(ctx context.Context, names []string) (map[string]map[string]string, error)
	// IsAvailable reports whether the workload's part of a pod is available.
	IsAvailable(workload client.Object, p *facts.Pod) bool
}

// KindWithNodeCounts is a Kind whose numbers depend on more than the workload, such as on nodes.
type KindWithNodeCounts interface {
	// ResolveSpec completes the spec. An error ends the round.
	ResolveSpec(ctx context.Context, r *Round, spec *Spec) error
}

// EventTexts are the messages of events about a pod of a workload, both by name.
type EventTexts struct {
	Created, Deleted func(workload, pod string) string
	// DeleteFailed has the error in the end.
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

// KindWithCandidateFilter is a Kind that lets only some of its pods be moved, whatever a policy says.
type KindWithCandidateFilter interface {
	// MovableFilter says which pods may be moved: the others are no candidates. The Difference of f
	// is not known yet.
	MovableFilter(r *Round, f *Facts) func(*facts.Pod) bool
}

// Reference names a workload.
type Reference struct {
	types.NamespacedName
	UID types.UID
}

// Spec is what a workload asks for, in numbers of pods.
type Spec struct {
	Replicas int
	Selector labels.Selector
	Strategy points.Strategy
	// Terms are those of the priority strategy.
	Terms facts.Terms
	// MinReady is for how long a pod has to be ready until it is available.
	MinReady time.Duration
	// Lifecycle has the hooks of the pods; nil if there are none.
	Lifecycle *kruise.Lifecycle
	// GracePeriodSeconds is how long a pod is out of its services before its images
	// change.
	GracePeriodSeconds int32
	// Found is what Resolve found out besides, for the kind itself.
	Found any
	// Invalid says which number cannot be read and counts as 0; nil in general, since
	// admission refuses such a workload.
	Invalid error
}

// Templates are the two revisions that a rollout goes between, and those of the pods.
type Templates interface {
	// CurrentRevision and Update name the two revisions.
	CurrentRevision() string
	UpdateRevision() string
	// PodRevision is the revision that a pod says it has, "" if it says none.
	PodRevision(pod *corev1.Pod) string
	// HasRevision reports whether a pod has the revision of a name.
	HasRevision(pod *corev1.Pod, name string) bool
	// CompareRevisions says how two revisions differ.
	CompareRevisions(from, to string) (Comparison, error)
	// LabelValue is what a pod of a revision is labelled with.
	LabelValue(name string) string
}

// Comparison is how two revisions differ.
type Comparison struct {
	// Known is false when one of the two is gone from history.
	Known bool
	// Diff is the difference of the pod templates.
	Diff                      inplace.Difference
	QoSChanged, ClaimsChanged bool
	// EnvRefresh names the containers whose env reads changed metadata and whose image
	// stays.
	EnvRefresh []string
}

// UpdateDelta is how many pods are to be moved, and what bounds that (CS-01).
type UpdateDelta struct {
	// Update is how many pods to move to the update revision; negative: back.
	Update int
	// MaxUnavailable is how many pods may be unavailable meanwhile.
	MaxUnavailable int
	// Settled is true when no pod of the current revision has to be moved.
	Settled bool
	// Unavailable is what MaxUnavailable is used up by before any pod is moved, for kinds
	// of which not every pod that is unavailable counts; nil for all others.
	Unavailable *selection.Unavailable
	// Missing are the pods that are not there. They use up MaxUnavailable as those that are
	// there do. It is nil for kinds whose MaxUnavailable leaves them out already.
	Missing *selection.Unavailable
	// MaxRecreated is how many pods may be unavailable for one to be recreated: one more than
	// scaling creates would stay away. 0 bounds nothing.
	MaxRecreated int
	// UnavailableBefore counts the unavailable pods that scaling comes to before it creates a pod again.
	// It is only for kinds with MaxRecreated.
	UnavailableBefore func(*facts.Pod) int
	// Condemned says which pods no replica needs any more: that they are unavailable uses up
	// nothing. It is nil for kinds whose pods can stand in for each other.
	Condemned func(*facts.Pod) bool
}

// OnDelete is the type of a strategy by which pods are updated only when they are deleted.
const OnDelete = "OnDelete"
