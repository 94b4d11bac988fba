// SPDX-License-Identifier: Apache-2.0

// Package daemonset adapts Advanced DaemonSets to the rollout loop: it finds the nodes that should run a pod
// and how many nodes may be without one, creates the pod of a node, and reports the status (ADS-01
// to ADS-16).
package daemonset

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=daemonsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=daemonsets/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=daemonsets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status;pods/resize,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;update;patch;delete

// Kind implements rollout.Kind.
type Kind struct {
	Gates Gates
	// ByScheduler has the scheduler put new pods onto their nodes, by a node affinity
	// (--assign-pods-by-scheduler).
	ByScheduler bool

	classifier *inplace.Classifier
}

// New makes a Kind.
func New(g Gates, byScheduler bool) *Kind {
	return &Kind{Gates: g, ByScheduler: byScheduler, classifier: inplace.NewClassifier()}
}

// OwnerKind is the kind in the owner reference of pods and revisions.
func OwnerKind() schema.GroupVersionKind { return kruise.GroupVersion.WithKind("DaemonSet") }

// WorkloadType implements rollout.Kind.
func (k *Kind) WorkloadType() rollout.Type {
	return rollout.Type{
		GroupVersionKind: OwnerKind(),
		New:              func() client.Object { return &kruise.DaemonSet{} },
		NewList:          func() client.ObjectList { return &kruise.DaemonSetList{} },
		Status:           func(o client.Object) any { return &o.(*kruise.DaemonSet).Status },
		CurrentRevision:  func(o client.Object) *string { return &o.(*kruise.DaemonSet).Status.CurrentRevision },
		NodeOf:           nodefit.NodeOf,
		Adopts:           func(client.Object, *corev1.Pod) bool { return true },
		PlainUpdates:     true,
		Events: rollout.EventTexts{
			Created:      func(_, pod string) string { return fmt.Sprintf(kruise.DaemonSetSuccessfulCreateMessage, pod) },
			Deleted:      func(_, pod string) string { return fmt.Sprintf(kruise.DaemonSetSuccessfulDeleteMessage, pod) },
			DeleteFailed: func(_, _ string, err error) string { return fmt.Sprintf("Error deleting: %v", err) },
		},
		Memory: func() any { return newMemory() },
	}
}

// ReadSpec implements rollout.Kind. Numbers that depend on nodes use the count in the status; ResolveSpec
// replaces it by the nodes that exist.
func (k *Kind) ReadSpec(o client.Object) (rollout.Spec, error) {
	set := o.(*kruise.DaemonSet)
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return rollout.Spec{}, fmt.Errorf("reading spec.selector: %w", err)
	}
	out := rollout.Spec{
		Replicas: int(set.Status.DesiredNumberScheduled), Selector: selector, Lifecycle: set.Spec.Lifecycle,
		MinReady: time.Duration(set.Spec.MinReadySeconds) * time.Second,
	}
	out.Strategy, out.Invalid = resolveStrategy(set, out.Replicas)
	return out, nil
}

// ResolveSpec implements rollout.KindWithNodeCounts: it finds the nodes (ADS-01).
func (k *Kind) ResolveSpec(ctx context.Context, r *rollout.Round, spec *rollout.Spec) error {
	set := r.Workload.(*kruise.DaemonSet)
	if spec.Selector.Empty() {
		r.RecordWarning(kruise.SelectingAllReason, "This daemon set is selecting all pods. A non-empty selector is required.")
		return fmt.Errorf("reading spec.selector: it is empty, which would select every pod; give it the labels of the template")
	}
	list := &corev1.NodeList{}
	if err := r.CachedClient().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	found, err := newFleet(&set.Spec.Template.Spec, list.Items)
	if err != nil {
		return err
	}
	spec.Found, spec.Replicas = found, found.wanted
	spec.Strategy, spec.Invalid = resolveStrategy(set, found.wanted)
	return nil
}

// ResolveTemplates implements rollout.Kind.
func (k *Kind) ResolveTemplates(ctx context.Context, r *rollout.Round) (rollout.Templates, error) {
	set := r.Workload.(*kruise.DaemonSet)
	owner := revision.Owner{Kind: OwnerKind(), Selector: set.Spec.Selector, Template: &set.Spec.Template, WithoutClaims: true, Current: set.Status.CurrentRevision}
	if set.Status.CollisionCount != nil {
		owner.Collisions = *set.Status.CollisionCount
	}
	t, err := r.ResolveHistory(ctx, owner, k.classifier)
	if err != nil {
		return nil, err
	}
	t.ShortHash = true
	return templates{t, set.Annotations[templateGeneration]}, nil
}

// Keys with which objects of old releases record the generation of a template.
const (
	templateGeneration      = "deprecated.daemonset.template.generation"
	templateGenerationLabel = "pod-template-generation"
)

// templates finds the revision of a pod by its hash, or by its generation (ADS-12).
type templates struct {
	*rollout.PodTemplates
	generation string
}

// HasRevision implements rollout.Templates.
func (t templates) HasRevision(pod *corev1.Pod, name string) bool {
	if t.generation != "" && name == t.UpdateRevision() && pod.Labels[templateGenerationLabel] == t.generation {
		return true
	}
	return t.PodTemplates.HasRevision(pod, name)
}

// DeletionAsked implements rollout.Kind. A DaemonSet has no label that requests the deletion of a pod:
// users delete the pod.
func (k *Kind) DeletionAsked(client.Object, *corev1.Pod) bool { return false }

// RecreatePod implements rollout.Kind. With surge it creates the next pod of the node, and the
// old one is deleted when the new one is available (ADS-10). Otherwise it deletes the pod, or sets it to PreparingDelete
// if a hook holds it, and the next scale phase creates another.
func (k *Kind) RecreatePod(ctx context.Context, r *rollout.Round, f *rollout.Facts, p *facts.Pod) error {
	s := k.newScaler(r, f)
	if f.Strategy.MaxSurge > 0 {
		return s.createPod(ctx, nodefit.NodeOf(p.Pod), s.t.History.Update)
	}
	return r.LetOneGo(ctx, f, p, func(p *facts.Pod) error { return r.DeletePod(ctx, f, p) })
}
