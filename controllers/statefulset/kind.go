// SPDX-License-Identifier: Apache-2.0

// Package statefulset adapts Advanced StatefulSets to the rollout loop: it finds the ordinals that are
// wanted, creates their pods and claims, and reports the status (ASTS-01 to ASTS-18).
package statefulset

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status;pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;update;patch;delete

// Kind implements rollout.Kind.
type Kind struct {
	Gates Gates

	classifier *inplace.Classifier
}

// New makes a Kind.
func New(g Gates) *Kind { return &Kind{Gates: g, classifier: inplace.NewClassifier()} }

// OwnerKind is the kind in the owner reference of pods and revisions.
func OwnerKind() schema.GroupVersionKind { return kruise.GroupVersion.WithKind("StatefulSet") }

// WorkloadType implements rollout.Kind.
func (k *Kind) WorkloadType() rollout.Type {
	t := rollout.Type{
		GroupVersionKind: OwnerKind(),
		New:              func() client.Object { return &kruise.StatefulSet{} },
		NewList:          func() client.ObjectList { return &kruise.StatefulSetList{} },
		Status:           func(o client.Object) any { return &o.(*kruise.StatefulSet).Status },
		CurrentRevision:  func(o client.Object) *string { return &o.(*kruise.StatefulSet).Status.CurrentRevision },
		Ordinals:         true,
		Adopts: func(o client.Object, pod *corev1.Pod) bool {
			_, ok := ordinalOf(o.(*kruise.StatefulSet), pod.Name)
			return ok
		},
		Events: rollout.EventTexts{
			Created: func(set, pod string) string {
				return fmt.Sprintf("create Pod %s in StatefulSet %s successful", pod, set)
			},
			Deleted: func(set, pod string) string {
				return fmt.Sprintf("delete Pod %s in StatefulSet %s successful", pod, set)
			},
			DeleteFailed: func(set, pod string, err error) string {
				return fmt.Sprintf("delete Pod %s in StatefulSet %s failed error: %v", pod, set, err)
			},
		},
		Memory: func() any { return &memory{} },
	}
	if k.Gates.AutoResizePVC {
		t.Related = []rollout.RelatedObject{{Object: &corev1.PersistentVolumeClaim{}, Workloads: setsResizingClaim}}
	}
	return t
}

// memory is the state that the controller keeps for a StatefulSet between rounds. It only saves work: losing it changes no decision.
type memory struct {
	// own are claims as the controller wrote them, by name, until the cache shows them.
	mu  sync.Mutex // claims of several pods are written at once
	own map[string]*corev1.PersistentVolumeClaim
	// proven is the revision whose pods could all be created the last time.
	proven string
}

// ReadSpec implements rollout.Kind.
func (k *Kind) ReadSpec(o client.Object) (rollout.Spec, error) {
	set := o.(*kruise.StatefulSet)
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return rollout.Spec{}, fmt.Errorf("reading spec.selector: %w", err)
	}
	out := rollout.Spec{Replicas: desiredReplicas(set), Selector: selector, Lifecycle: set.Spec.Lifecycle}
	out.Strategy, out.Invalid = resolveStrategy(set)
	if ru := set.Spec.UpdateStrategy.RollingUpdate; ru != nil {
		if ru.MinReadySeconds != nil {
			out.MinReady = time.Duration(*ru.MinReadySeconds) * time.Second
		}
		if ru.UnorderedUpdate != nil {
			if out.Terms, err = facts.NewTerms(ru.UnorderedUpdate.PriorityStrategy); err != nil {
				return rollout.Spec{}, fmt.Errorf("reading spec.updateStrategy.rollingUpdate.unorderedUpdate.priorityStrategy: %w", err)
			}
		}
		if ru.InPlaceUpdateStrategy != nil {
			out.GracePeriodSeconds = ru.InPlaceUpdateStrategy.GracePeriodSeconds
		}
	}
	return out, nil
}

// resolveStrategy turns the strategy into numbers of pods: both limits round down and are at
// least 1. A number that cannot be read counts as 1, the lowest limit that allows progress.
func resolveStrategy(set *kruise.StatefulSet) (s points.Strategy, invalid error) {
	limit := func(v *intstr.IntOrString, unset int) int {
		if v == nil {
			return unset
		}
		n, err := budget.ResolvePercent(*v, desiredReplicas(set), false)
		if err != nil && invalid == nil {
			invalid = err
		}
		return max(n, 1)
	}
	s = points.Strategy{
		Type: string(set.Spec.UpdateStrategy.Type), Policy: string(kruise.RecreatePodUpdatePolicyType),
		MaxUnavailable: 1, ScaleMaxUnavailable: math.MaxInt32, Ordered: true,
	}
	if s.Type == "" {
		s.Type = string(appsv1.RollingUpdateStatefulSetStrategyType)
	}
	if set.Spec.ScaleStrategy != nil {
		s.ScaleMaxUnavailable = limit(set.Spec.ScaleStrategy.MaxUnavailable, math.MaxInt32)
	}
	ru := set.Spec.UpdateStrategy.RollingUpdate
	if ru == nil {
		return s, invalid
	}
	if ru.PodUpdatePolicy != "" {
		s.Policy = string(ru.PodUpdatePolicy)
	}
	if ru.Partition != nil {
		s.Partition = min(max(int(*ru.Partition), 0), desiredReplicas(set))
	}
	s.Paused, s.Ordered = ru.Paused, ru.UnorderedUpdate == nil
	s.MaxUnavailable = limit(ru.MaxUnavailable, 1)
	if ru.UnorderedUpdate != nil {
		facts.SetPriority(&s, ru.UnorderedUpdate.PriorityStrategy)
	}
	return s, invalid
}

// ResolveTemplates implements rollout.Kind. A revision records its claim templates, but they are not part
// of its data.
func (k *Kind) ResolveTemplates(ctx context.Context, r *rollout.Round) (rollout.Templates, error) {
	set := r.Workload.(*kruise.StatefulSet)
	owner := revision.Owner{
		Kind: OwnerKind(), Selector: set.Spec.Selector, Template: &set.Spec.Template, WithoutClaims: true,
		Claims: set.Spec.VolumeClaimTemplates, RecordsClaims: true, Current: set.Status.CurrentRevision,
	}
	if set.Status.CollisionCount != nil {
		owner.Collisions = *set.Status.CollisionCount
	}
	t, err := r.ResolveHistory(ctx, owner, k.classifier)
	if err != nil {
		return nil, err
	}
	if len(set.Spec.VolumeClaimTemplates) == 0 && t.CurrentRevision() != t.UpdateRevision() && slices.ContainsFunc(t.History.All, hadClaims) {
		return t, k.findClaims(ctx, r, r.Spec.Found.(*claimSet))
	}
	return t, nil
}

// DeletionAsked implements rollout.Kind.
func (k *Kind) DeletionAsked(_ client.Object, pod *corev1.Pod) bool {
	_, ok := pod.Labels[kruise.SpecifiedDeleteKey]
	return ok
}

// MovableFilter implements rollout.KindWithCandidateFilter (ASTS-11). Only members are moved. If the update
// is ordered, pods in positions below the partition are not moved, even if reserved ordinals leave
// fewer pods than the partition.
func (k *Kind) MovableFilter(_ *rollout.Round, f *rollout.Facts) func(*facts.Pod) bool {
	set := f.Workload.(*kruise.StatefulSet)
	o := k.desiredOrdinals(set)
	lowest := o.Start
	if f.Strategy.Ordered {
		all := o.AllOrdinals()
		if f.Strategy.Partition >= len(all) {
			return func(*facts.Pod) bool { return false } // the last may have an ordinal beyond the partition
		}
		lowest = max(lowest+f.Strategy.Partition, all[f.Strategy.Partition])
	}
	return func(p *facts.Pod) bool {
		n, ok := ordinalOf(set, p.Name)
		return ok && o.HasOrdinal(n) && n >= lowest
	}
}

// ComputeDifference implements rollout.Kind (ASTS-08, ASTS-11). Missing and terminating pods are
// unavailable as well. Recreating a pod needs room in scaleStrategy.maxUnavailable too: without it, the pod
// would be deleted and not created again.
func (k *Kind) ComputeDifference(f *rollout.Facts) rollout.UpdateDelta {
	s := k.newReadOnlyScaler(f)
	old, updated := 0, 0
	for _, p := range f.Pods {
		n, ok := ordinalOf(s.set, p.Name)
		switch {
		case !ok || !s.ordinals.HasOrdinal(n):
		case p.Facts.Updated:
			updated++
		case f.CanMove(p):
			old++
		}
	}
	missing := s.computeNeed().missing
	if !f.Strategy.Ordered {
		old = max(min(old, f.Replicas-f.Strategy.Partition-updated-missing.Total), 0)
	}
	return rollout.UpdateDelta{
		Update: old, MaxUnavailable: f.Strategy.MaxUnavailable, MaxRecreated: s.scaleLimit(), Missing: &missing,
		UnavailableBefore: s.countUnavailableBefore(),
		Settled:           old == 0 || f.Strategy.Type == rollout.OnDelete,
		Condemned: func(p *facts.Pod) bool {
			n, ok := ordinalOf(s.set, p.Name)
			return !ok || !s.ordinals.HasOrdinal(n)
		},
	}
}

// RefreshPod implements rollout.KindWithLabelRefresh: it keeps the labels that name a pod and its ordinal
// (ASTS-06).
func (k *Kind) RefreshPod(r *rollout.Round, p *facts.Pod) func(context.Context) (*corev1.Pod, error) {
	set := r.Workload.(*kruise.StatefulSet)
	n, ok := ordinalOf(set, p.Name)
	if !ok || k.hasIdentityLabels(p.Pod, n) {
		return nil
	}
	return func(ctx context.Context) (*corev1.Pod, error) {
		pod := p.Pod.DeepCopy()
		k.setIdentityLabels(pod, n)
		if err := r.CachedClient().Patch(ctx, pod, client.StrategicMergeFrom(p.Pod, client.MergeFromWithOptimisticLock{})); err != nil {
			return nil, fmt.Errorf("labelling pod %s with its ordinal: %w", pod.Name, err)
		}
		return pod, nil
	}
}

func (k *Kind) hasIdentityLabels(pod *corev1.Pod, ordinal int) bool {
	return pod.Labels[appsv1.StatefulSetPodNameLabel] == pod.Name &&
		(!k.Gates.PodIndexLabel || pod.Labels[appsv1.PodIndexLabel] == strconv.Itoa(ordinal))
}

func (k *Kind) setIdentityLabels(pod *corev1.Pod, ordinal int) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	if k.Gates.PodIndexLabel {
		pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(ordinal)
	}
}
