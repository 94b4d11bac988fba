// SPDX-License-Identifier: Apache-2.0

// Package cloneset adapts CloneSets to the rollout loop: it resolves their strategy to
// numbers of pods, creates and deletes pods and claims, and reports the status (CS-01 to
// CS-19).
package cloneset

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status;pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes;services,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch

// Kind implements rollout.Kind.
type Kind struct {
	Gates Gates
	// ExcludePreparingDelete leaves pods in PreparingDelete out of the replicas of every
	// CloneSet.
	ExcludePreparingDelete bool

	classifier *inplace.Classifier
}

// New makes the adapter.
func New(gates Gates, excludePreparingDelete bool) *Kind {
	return &Kind{Gates: gates, ExcludePreparingDelete: excludePreparingDelete, classifier: inplace.NewClassifier()}
}

// OwnerKind is the kind in the owner reference of pods, claims and revisions. It is the
// older version, which is what users see on their pods.
func OwnerKind() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind("CloneSet") }

// WorkloadType implements rollout.Kind.
func (k *Kind) WorkloadType() rollout.Type {
	return rollout.Type{
		GroupVersionKind: OwnerKind(),
		New:              func() client.Object { return &kruise.CloneSet{} },
		NewList:          func() client.ObjectList { return &kruise.CloneSetList{} },
		Status:           func(o client.Object) any { return &o.(*kruise.CloneSet).Status },
		CurrentRevision:  func(o client.Object) *string { return &o.(*kruise.CloneSet).Status.CurrentRevision },
		Memory:           func() any { return newMemory() },
		Owned:            []client.Object{&corev1.PersistentVolumeClaim{}},
	}
}

// ReadSpec implements rollout.Kind.
func (k *Kind) ReadSpec(o client.Object) (rollout.Spec, error) {
	set := o.(*kruise.CloneSet)
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return rollout.Spec{}, fieldError("spec.selector", err)
	}
	out := rollout.Spec{
		Replicas: desiredReplicas(set), Selector: selector, MinReady: time.Duration(set.Spec.MinReadySeconds) * time.Second,
		Lifecycle: set.Spec.Lifecycle,
	}
	out.Strategy, out.Invalid = resolveStrategy(set)
	if ru := rollingStrategy(set); ru != nil {
		if out.Terms, err = facts.NewTerms(ru.PriorityStrategy); err != nil {
			return rollout.Spec{}, fieldError("spec.updateStrategy", err)
		}
		if ru.InPlaceUpdateStrategy != nil {
			out.GracePeriodSeconds = ru.InPlaceUpdateStrategy.GracePeriodSeconds
		}
	}
	return out, nil
}

// ResolveTemplates implements rollout.Kind.
func (k *Kind) ResolveTemplates(ctx context.Context, r *rollout.Round) (rollout.Templates, error) {
	set := r.Workload.(*kruise.CloneSet)
	owner := revision.Owner{
		Kind: OwnerKind(), Selector: set.Spec.Selector, Template: &set.Spec.Template,
		Claims: set.Spec.VolumeClaimTemplates, RecordsClaims: true, Current: set.Status.CurrentRevision,
	}
	if set.Status.CollisionCount != nil {
		owner.Collisions = *set.Status.CollisionCount
	}
	t, err := r.ResolveHistory(ctx, owner, k.classifier)
	if err != nil {
		return nil, err
	}
	t.ShortHash = k.Gates.ShortHash
	return t, nil
}

// DeletionAsked implements rollout.Kind.
func (k *Kind) DeletionAsked(o client.Object, pod *corev1.Pod) bool {
	if _, ok := pod.Labels[kruise.SpecifiedDeleteKey]; ok {
		return true
	}
	return slices.Contains(o.(*kruise.CloneSet).Spec.ScaleStrategy.PodsToDelete, pod.Name)
}

// ComputeDifference implements rollout.Kind.
func (k *Kind) ComputeDifference(f *rollout.Facts) rollout.UpdateDelta {
	d := k.computeDiff(f, f.Strategy.MaxSurge, false)
	return rollout.UpdateDelta{
		Update: d.Update, MaxUnavailable: d.MaxUnavailable,
		Settled: d.Surplus == 0 && !k.mustCompleteUpdates(f, d) || f.Strategy.Type == rollout.OnDelete,
	}
}

// RefreshPod implements rollout.KindWithLabelRefresh: it gives pods of older releases the label with
// the short hash.
func (k *Kind) RefreshPod(r *rollout.Round, p *facts.Pod) func(context.Context) (*corev1.Pod, error) {
	if p.Labels[podTemplateHash] != "" || p.Labels[rollout.RevisionLabel] == "" {
		return nil
	}
	return func(ctx context.Context) (*corev1.Pod, error) {
		pod := p.Pod.DeepCopy()
		pod.Labels[podTemplateHash] = revision.ShortHash(pod.Labels[rollout.RevisionLabel])
		if err := r.CachedClient().Patch(ctx, pod, client.StrategicMergeFrom(p.Pod, client.MergeFromWithOptimisticLock{})); err != nil {
			return nil, hashLabelError(pod, err)
		}
		return pod, nil
	}
}
