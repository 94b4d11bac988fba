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
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Kind adapts a kind of workload to the Controller.
type Kind interface {
	// Type describes the kind.
	Type() Type
	// Spec reads what a workload asks for. An error ends the round.
	Spec(workload client.Object) (Spec, error)
	// Templates finds the revisions of a workload, and makes the one of its template
	// where there is none.
	Templates(ctx context.Context, r *Round) (Templates, error)
	// DeletionAsked says whether a pod is to be deleted because a user asked for it, by
	// a label or by the workload's spec.
	DeletionAsked(workload client.Object, pod *corev1.Pod) bool
	// Difference says how many pods are to be moved now.
	Difference(f *Facts) Difference
	// Scale creates and deletes pods, and says whether it did. Pods are moved to another
	// revision only in a round that neither created nor deleted any (CS-04).
	Scale(ctx context.Context, r *Round, f *Facts) (acted bool, err error)
	// Recreate has a pod replaced that cannot be, or is not to be, changed in place.
	Recreate(ctx context.Context, r *Round, f *Facts, pod *facts.Pod) error
	// Report writes the status, and the events of what changed.
	Report(ctx context.Context, r *Round, f *Facts, res Result) error
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
	// Workloads are those that a pod belongs to. It is nil for kinds that own their
	// pods: these are found by their owner reference.
	Workloads func(context.Context, *corev1.Pod) []Reference
	// Memory makes what the kind itself keeps of a workload between rounds; it may be
	// nil. Losing it must change no decision.
	Memory func() any
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
	Strategy decision.Strategy
	// Terms are those of the priority strategy.
	Terms facts.Terms
	// MinReady is for how long a pod has to be ready until it is available.
	MinReady time.Duration
	// Lifecycle has the hooks of the pods; nil if there are none.
	Lifecycle *kruise.Lifecycle
	// GracePeriodSeconds is how long a pod is out of its services before its images
	// change.
	GracePeriodSeconds int32
	// Invalid says which number cannot be read and counts as 0; nil in general, since
	// admission refuses such a workload.
	Invalid error
}

// Templates are the two revisions that a rollout goes between, and those of the pods.
type Templates interface {
	// Current and Update name the two revisions.
	Current() string
	Update() string
	// At is the revision that a pod says it has, "" if it says none.
	At(pod *corev1.Pod) string
	// Is says whether a pod has the revision of a name.
	Is(pod *corev1.Pod, name string) bool
	// Compare says how two revisions differ.
	Compare(from, to string) (Comparison, error)
	// Label is what a pod of a revision is labelled with.
	Label(name string) string
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

// Difference is how many pods are to be moved, and what bounds that (CS-01).
type Difference struct {
	// Update is how many pods to move to the update revision; negative: back.
	Update int
	// MaxUnavailable is how many pods may be unavailable meanwhile.
	MaxUnavailable int
	// Settled is true when no pod of the current revision has to be moved.
	Settled bool
}

// OnDelete is the type of a strategy by which pods are updated only when they are deleted.
const OnDelete = "OnDelete"
