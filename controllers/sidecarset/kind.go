// SPDX-License-Identifier: Apache-2.0

// Package sidecarset adapts SidecarSets to the rollout loop: it finds the pods that have their containers, resolves the strategy to
// numbers of pods, changes images in place, cold or hot, and reports the status (SS-09 to SS-17).
package sidecarset

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/matching"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch

// InjectedIndex finds pods by the SidecarSets whose containers they have.
const InjectedIndex = "injectedSidecarSets"

// SetupIndexes adds the indexes of pods with which controllers of SidecarSets read.
func SetupIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return errors.Join(
		indexer.IndexField(ctx, &corev1.Pod{}, InjectedIndex, InjectedIn),
		indexer.IndexField(ctx, &corev1.Pod{}, matching.LabelsIndex, matching.IndexLabels),
	)
}

// InjectedIn is the value of InjectedIndex for a pod.
func InjectedIn(o client.Object) []string {
	if pod, ok := o.(*corev1.Pod); ok {
		return podmeta.InjectedSets(pod)
	}
	return nil
}

// Kind implements rollout.Kind, rollout.KindWithSharedPods, rollout.KindWithNodeCounts, rollout.KindWithCandidateFilter,
// rollout.KindWithInPlaceUpdate, rollout.KindWithLabelRefresh and rollout.KindWithMissingPods.
type Kind struct {
	cached client.Reader
	// namespace is the namespace of the manager, which has the revisions.
	namespace string
	events    record.EventRecorder
	missed    *MissedPodFinder
}

// Option changes a Kind.
type Option func(*Kind)

// WithMissed makes the Kind look for pods that lack containers that they should have. The cache needs matching.KeysIndex.
func WithMissed(m *MissedPodFinder) Option { return func(k *Kind) { k.missed = m } }

// New makes the adapter. events records events of pods.
func New(cached client.Reader, namespace string, events record.EventRecorder, opts ...Option) *Kind {
	k := &Kind{cached: cached, namespace: namespace, events: events}
	for _, o := range opts {
		o(k)
	}
	return k
}

// memory is the state that the controller keeps for a SidecarSet between rounds. The first fields are computed once for each generation.
type memory struct {
	generation int64
	hashes     podmeta.Hashes
	selector   *matching.Selector
	// told is the revision for which NotUpgradablePods was recorded.
	told string
	// judged are decisions about pods that lack the containers.
	judged map[types.UID]injectionVerdict
	// changed is when a user last changed the SidecarSet; zero if that has not been read.
	changed time.Time
	// evicted is when a pod that lacks the containers was last evicted.
	evicted time.Time
	// quiet is since when no pod has lacked the containers, after some were evicted.
	quiet time.Time
	// recreationHeld is the reason why pods that lack the containers are not evicted.
	recreationHeld string
}

// WorkloadType implements rollout.Kind.
func (k *Kind) WorkloadType() rollout.Type {
	return rollout.Type{
		GroupVersionKind: kruise.GroupVersion.WithKind("SidecarSet"),
		New:              func() client.Object { return &kruise.SidecarSet{} },
		NewList:          func() client.ObjectList { return &kruise.SidecarSetList{} },
		Status:           func(o client.Object) any { return &o.(*kruise.SidecarSet).Status },
		Workloads:        k.relatedSidecarSets,
		Lists:            func(o client.Object) client.ListOption { return client.MatchingFields{InjectedIndex: o.GetName()} },
		Memory:           func() any { return &memory{generation: -1} },
		Related:          []rollout.RelatedObject{k.namespaceEvents()},
	}
}

// relatedSidecarSets are the SidecarSets whose containers a pod has, or lacks. Beside an error it returns those that it found.
func (k *Kind) relatedSidecarSets(ctx context.Context, pod *corev1.Pod) (out []rollout.Reference, err error) {
	for _, name := range podmeta.InjectedSets(pod) {
		set := &kruise.SidecarSet{}
		switch unread := k.cached.Get(ctx, types.NamespacedName{Name: name}, set); {
		case unread == nil:
			out = append(out, rollout.Reference{NamespacedName: types.NamespacedName{Name: name}, UID: set.UID})
		case !apierrors.IsNotFound(unread):
			err = fmt.Errorf("reading SidecarSet %s: %w", name, unread)
		}
	}
	if k.missed == nil {
		return out, err
	}
	more, unlisted := k.uninjectedSets(ctx, pod)
	return append(out, more...), errors.Join(err, unlisted)
}

// DeletionAsked implements rollout.Kind: pods belong to other workloads.
func (k *Kind) DeletionAsked(client.Object, *corev1.Pod) bool { return false }

// RecreatePod implements rollout.Kind. Pods belong to other workloads, so recreating one is an error, which the condition FailedUpdate
// reports.
func (k *Kind) RecreatePod(_ context.Context, _ *rollout.Round, f *rollout.Facts, p *facts.Pod) error {
	return fmt.Errorf("rollout/change wants pod %s/%s recreated, but SidecarSet %s does not own it: answer InPlace, Reject or Wait", p.Namespace, p.Name, f.Subject.Name)
}

// loadMemory returns the memory of the SidecarSet of a round, for its present generation.
func loadMemory(r *rollout.Round) (*memory, *kruise.SidecarSet, error) {
	m, set := r.KindMemory().(*memory), r.Workload.(*kruise.SidecarSet)
	if m.generation == set.Generation && m.selector != nil {
		return m, set, nil
	}
	var err error
	if m.hashes, err = podmeta.HashesOf(&set.Spec); err != nil {
		return nil, nil, err
	}
	if m.selector, err = matching.NewSelector(set); err != nil {
		return nil, nil, err
	}
	m.generation, m.changed, m.judged = set.Generation, time.Time{}, map[types.UID]injectionVerdict{}
	return m, set, nil
}
