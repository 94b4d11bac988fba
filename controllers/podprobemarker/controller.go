// SPDX-License-Identifier: Apache-2.0

// Package podprobemarker keeps the status of PodProbeMarkers, and marks serverless pods by their own
// conditions (PPM-01, PPM-03, PPM-05). Package nodepodprobe writes the probes of nodes.
package podprobemarker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodepodprobe"
	"github.com/regatta-sh/regatta/controllers/podprobemarker/podmeta"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/batch"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=podprobemarkers,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=podprobemarkers/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

const (
	// lookAgain is how soon a marker that is being deleted is reconciled again.
	lookAgain = 500 * time.Millisecond
	// heldAgain is how soon pods that a rule leaves unchanged are reconciled again.
	heldAgain = 10 * time.Second
	// writers is how many pods of a marker are written at once.
	writers = 16
)

// InvalidSelectorReason is the reason of an event about a marker that selects nothing, since its
// selector is invalid.
const InvalidSelectorReason = "InvalidSelector"

// Reconciler works on one PodProbeMarker at a time.
type Reconciler struct {
	reconcile.Deps
	reconcile.Reconciler

	marks  podmeta.Writer
	missed *reconcile.MissedEvents

	serverless bool
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithServerless makes the Reconciler mark serverless pods by their own conditions.
func WithServerless(on bool) Option { return func(r *Reconciler) { r.serverless = on } }

// New makes a Reconciler.
func New(deps reconcile.Deps, opts ...Option) *Reconciler {
	r := &Reconciler{Deps: deps.WithDefaults()}
	r.marks = podmeta.Writer{Client: r.Client, Engine: r.Engine, Now: r.Now}
	for _, opt := range opts {
		opt(r)
	}
	r.missed = reconcile.NewMissedEvents(controllerName, r.allRequests)
	r.Reconciler = reconcile.NewObjectReconciler(r.Deps, reconcile.ObjectFuncs[*v1alpha1.PodProbeMarker]{
		Reconcile: r.reconcileMarker, Finalize: r.reconcileMarker, Report: r.reportFailure,
	})
	return r
}

func (r *Reconciler) reconcileMarker(ctx context.Context, o *v1alpha1.PodProbeMarker) (time.Duration, error) {
	if o.DeletionTimestamp != nil {
		return r.finalizeMarker(ctx, o)
	}
	if !controllerutil.ContainsFinalizer(o, kruise.NodePodProbeCleanupFinalizer) {
		if err := r.patchFinalizer(ctx, o, controllerutil.AddFinalizer); err != nil {
			return 0, err
		}
	}
	m, err := podmeta.Read(o)
	if err != nil {
		r.Events.Event(o, corev1.EventTypeWarning, InvalidSelectorReason, err.Error()+"; no pod is probed")
		return 0, r.patchStatus(ctx, o, 0, kstatus.NewStalled(InvalidSelectorReason, err.Error()+"; no pod is probed"))
	}
	matched, after, err := r.reconcilePods(ctx, m)
	if err != nil {
		return after, err
	}
	return after, r.patchStatus(ctx, o, matched, kstatus.NewReady(kruise.ObservedReason, "The pods that the selector matches are probed."))
}

// finalizeMarker removes the finalizer of a marker once no node has probes of it any more (PPM-03).
func (r *Reconciler) finalizeMarker(ctx context.Context, o *v1alpha1.PodProbeMarker) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(o, kruise.NodePodProbeCleanupFinalizer) {
		return 0, nil
	}
	list := &v1alpha1.NodePodProbeList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing NodePodProbes: %w", err)
	}
	for i := range list.Items {
		if nodepodprobe.HasProbes(&list.Items[i], o) {
			return lookAgain, nil
		}
	}
	return 0, r.patchFinalizer(ctx, o, controllerutil.RemoveFinalizer)
}

func (r *Reconciler) patchFinalizer(ctx context.Context, o *v1alpha1.PodProbeMarker, change func(client.Object, string) bool) error {
	before := o.DeepCopy()
	change(o, kruise.NodePodProbeCleanupFinalizer)
	if err := r.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the finalizer of PodProbeMarker %s: %w", client.ObjectKeyFromObject(o), err)
	}
	return nil
}

// reconcilePods counts the pods of a marker, and marks the serverless ones among them.
func (r *Reconciler) reconcilePods(ctx context.Context, m podmeta.Marker) (matched int64, after time.Duration, err error) {
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, client.InNamespace(m.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return 0, 0, fmt.Errorf("listing the pods of namespace %s: %w", m.Namespace, err)
	}
	known := map[string]*corev1.Node{}
	var acts []func() error
	var held atomic.Bool
	for i := range list.Items {
		pod := &list.Items[i]
		if !podmeta.IsProbeable(pod) || !m.SelectsPod(pod, false) && !(r.serverless && m.SelectsPod(pod, true)) {
			continue
		}
		node, ok := known[pod.Spec.NodeName]
		if !ok {
			if node, err = nodes.Get(ctx, r.Client, r.Live, pod.Spec.NodeName); err != nil {
				return 0, 0, err
			}
			known[pod.Spec.NodeName] = node
		}
		if node == nil || !m.SelectsPod(pod, r.serverless && nodes.IsVirtual(node)) {
			continue
		}
		matched++
		if r.serverless && nodes.IsVirtual(node) {
			acts = append(acts, func() error { return r.markServerlessPod(ctx, pod, &held) })
		}
	}
	err = batch.RunParallel(writers, acts)
	if held.Load() {
		after = heldAgain
	}
	return matched, after, err
}

// markServerlessPod marks a serverless pod by its conditions, for all its markers.
func (r *Reconciler) markServerlessPod(ctx context.Context, pod *corev1.Pod, held *atomic.Bool) error {
	all, err := podmeta.List(ctx, r.Client, pod.Namespace)
	if err != nil {
		return err
	}
	var mine []podmeta.Marker
	for _, m := range all {
		if m.SelectsPod(pod, true) {
			mine = append(mine, m)
		}
	}
	results := podmeta.OfConditions(mine, pod)
	if len(results) == 0 {
		return nil
	}
	why, err := r.marks.ApplyResults(ctx, pod, r.marks.BuildInput(pod, true, results), results)
	if why != nil {
		held.Store(true)
	}
	return client.IgnoreNotFound(err) // a conflict with another client, or with another pod of the same name, is tried again
}

// reportFailure writes to the status why a marker could not be brought up to date. patchStatus, which is the last write of a round, removes
// that once it could.
func (r *Reconciler) reportFailure(ctx context.Context, o *v1alpha1.PodProbeMarker, cause error) error {
	before := o.DeepCopy()
	if cause == nil || !failure.SetCondition(&o.Status, cause, o.Generation, r.marks.Now()) {
		return nil
	}
	before.Status.ObservedGeneration = -1 // as in status
	err := r.Client.Status().Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if !failure.IsReported(err) {
		return nil
	}
	return err
}

// patchStatus writes the results to the status, if they have changed.
func (r *Reconciler) patchStatus(ctx context.Context, o *v1alpha1.PodProbeMarker, matched int64, summary kstatus.Summary) error {
	before := o.DeepCopy()
	stored := before.Status
	o.Status.ObservedGeneration, o.Status.MatchedPods = o.Generation, matched
	changed := failure.SetSummary(&o.Status, summary, o.Generation, r.marks.Now())
	if !changed && before.Status.ObservedGeneration == o.Generation && before.Status.MatchedPods == matched {
		return nil
	}
	before.Status.ObservedGeneration = -1 // the schema requires the number, so it is in every patch
	if err := r.Client.Status().Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		o.Status = stored // the report compares with it
		return fmt.Errorf("writing the status of PodProbeMarker %s: %w", client.ObjectKeyFromObject(o), err)
	}
	return nil
}
