// SPDX-License-Identifier: Apache-2.0

// Package persistentpodstate remembers where pods of StatefulSets run (PPS-01 to PPS-03). The webhook
// of pods adds node affinity for the remembered place to a pod that is created again.
package persistentpodstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/ordinals"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=persistentpodstates,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=persistentpodstates/status,verbs=update;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io;apps,resources=statefulsets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=get;list;watch

// Finder reads workloads of any kind.
type Finder interface {
	FindWorkload(ctx context.Context, namespace string, ref scale.Reference) (*scale.Workload, error)
}

// Options are what these controllers need besides the Deps of all controllers.
type Options struct {
	Finder Finder
	// Configuration has the white list of kinds besides StatefulSets.
	Configuration rules.Configuration
	// StartOrdinal is whether Advanced StatefulSets may begin at another ordinal than 0.
	StartOrdinal bool
}

// Reconciler remembers the pods of one workload at a time.
type Reconciler struct {
	reconcile.Deps
	reconcile.Reconciler
	Options
	missed *reconcile.MissedEvents
}

const controllerName = "persistentpodstate-controller"

// New makes a Reconciler. The client's cache must have the index rollout.OwnerIndex of pods.
func New(deps reconcile.Deps, o Options) *Reconciler {
	r := &Reconciler{Deps: deps.WithDefaults(), Options: o}
	r.missed = reconcile.NewMissedEvents(controllerName, r.allRequests)
	r.Reconciler = reconcile.NewObjectReconciler(r.Deps, reconcile.ObjectFuncs[*kruise.PersistentPodState]{
		Reconcile: r.reconcileState,
		Status:    func(state *kruise.PersistentPodState) any { return &state.Status },
	})
	return r
}

// SetupWithManager adds the controllers to a manager: one that remembers pods, and one for each kind of
// workload whose annotations can ask for that, including the kinds of the white list.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	err := r.CompleteController(r.NewController(mgr, controllerName, nil).
		For(&kruise.PersistentPodState{}, builder.WithPredicates(reconcile.UserChanges())).
		Watches(&corev1.Pod{}, r.onPods()).
		Watches(&appsv1.StatefulSet{}, r.onWorkloads(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))).
		Watches(&kruise.StatefulSet{}, r.onWorkloads(kruise.GroupVersion.WithKind("StatefulSet"))), r)
	if err != nil {
		return fmt.Errorf("remembering pods: %w", err)
	}
	for _, g := range []*Generator{
		{Client: r.Client, New: func() client.Object { return &appsv1.StatefulSet{} }, Kind: appsv1.SchemeGroupVersion.WithKind("StatefulSet")},
		{Client: r.Client, New: func() client.Object { return &kruise.StatefulSet{} }, Kind: kruise.GroupVersion.WithKind("StatefulSet")},
	} {
		err := r.CompleteController(r.NewController(mgr, "persistentpodstate-of-"+g.Kind.GroupKind().String(), nil).
			For(g.New(), builder.WithPredicates(requestPredicate())).
			Owns(&kruise.PersistentPodState{}, builder.WithPredicates(reconcile.UserChanges())), g)
		if err != nil {
			return fmt.Errorf("making PersistentPodStates of %s: %w", g.Kind.GroupKind(), err)
		}
	}
	if err := mgr.Add(crecovery.WrapRunnable("persistentpodstate", &customs{Reconciler: r, mgr: mgr, running: map[schema.GroupVersionKind]context.CancelFunc{}})); err != nil {
		return fmt.Errorf("making PersistentPodStates of the kinds of the white list: %w", err)
	}
	return nil
}

// reconcileState brings the remembered states up to date. It returns when to reconcile again; 0 for when
// something changes.
func (r *Reconciler) reconcileState(ctx context.Context, state *kruise.PersistentPodState) (time.Duration, error) {
	next, summary := state.Status.DeepCopy(), kstatus.NewReady(kruise.ObservedReason, "The places of the pods are remembered.")
	next.ObservedGeneration = state.Generation
	workload, current, err := r.findTarget(ctx, state)
	switch {
	case errors.Is(err, scale.ErrNoScale):
		return 0, fmt.Errorf("the target %s %s has no subresource scale, so its pods are not known: %w", state.Spec.TargetReference.Kind, state.Spec.TargetReference.Name, err)
	case err != nil:
		return 0, err
	case !current:
		return requeue.Soon, nil
	case workload == nil:
		next.PodStates = nil
		summary = kstatus.NewReady(kruise.TargetNotFoundReason, message.Shorten(fmt.Sprintf("There is no %s %s in namespace %s.", state.Spec.TargetReference.Kind, state.Spec.TargetReference.Name, state.Namespace)))
	default:
		if next.PodStates, err = r.collectPodStates(ctx, state, workload); err != nil {
			return 0, err
		}
	}
	failure.SetSummary(next, summary, state.Generation, r.Now())
	if equality.Semantic.DeepEqual(state.Status, *next) {
		return 0, nil
	}
	before := state.DeepCopy()
	state.Status = *next
	if err := r.Client.Status().Patch(ctx, state, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		state.Status = before.Status // the report compares with what is stored
		return 0, fmt.Errorf("writing the status of PersistentPodState %s: %w", client.ObjectKeyFromObject(state), err)
	}
	return 0, nil
}

// findTarget returns the workload; nil if it is gone or being deleted. current is false while the
// cache does not have the workload yet: no state is forgotten then.
func (r *Reconciler) findTarget(ctx context.Context, state *kruise.PersistentPodState) (w *scale.Workload, current bool, err error) {
	ref := state.Spec.TargetReference
	w, err = r.Finder.FindWorkload(ctx, state.Namespace, scale.Reference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name})
	if err != nil {
		return nil, false, err
	}
	if w != nil && w.Terminating {
		return nil, true, nil
	}
	if w != nil || !kruise.RemembersPods(groupKind(ref)) {
		return w, true, nil
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	err = r.Live.Get(ctx, client.ObjectKey{Namespace: state.Namespace, Name: ref.Name}, live)
	switch {
	case err == nil:
		return nil, live.DeletionTimestamp != nil, nil
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, true, nil
	}
	return nil, false, fmt.Errorf("reading %s %s past the cache: %w", ref.Kind, ref.Name, err)
}

func groupKind(ref kruise.TargetReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// collectPodStates is PPS-02 and PPS-03.
func (r *Reconciler) collectPodStates(ctx context.Context, state *kruise.PersistentPodState, w *scale.Workload) (map[string]kruise.PodState, error) {
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, client.InNamespace(state.Namespace), client.MatchingFields{rollout.OwnerIndex: string(w.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	out := map[string]kruise.PodState{}
	maps.Copy(out, state.Status.PodStates)
	there := map[string]bool{}
	for i := range list.Items {
		pod := &list.Items[i]
		there[pod.Name] = true
		record, err := r.buildPodState(ctx, state, pod)
		if err != nil {
			return nil, err
		}
		if record != nil {
			out[pod.Name] = *record
		}
	}
	if state.Spec.PersistentPodStateRetentionPolicy == kruise.PersistentPodStateRetentionPolicyWhenDeleted {
		return out, nil
	}
	wanted, err := r.desiredOrdinals(ctx, state, w)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(out, func(name string, _ kruise.PodState) bool {
		n, numbered := facts.PodOrdinal(name)
		return numbered && !there[name] && !wanted.HasOrdinal(n)
	})
	return out, nil
}

// buildPodState is PPS-02 for one pod; nil while there is nothing to remember.
func (r *Reconciler) buildPodState(ctx context.Context, state *kruise.PersistentPodState, pod *corev1.Pod) (*kruise.PodState, error) {
	if !availability.IsActive(pod) || pod.Spec.NodeName == "" || !availability.HasReadyCondition(pod) {
		return nil, nil
	}
	node := &corev1.Node{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading node %s: %w", pod.Spec.NodeName, err)
	}
	out := &kruise.PodState{NodeName: node.Name}
	if required := state.Spec.RequiredPersistentTopology; required != nil {
		out.NodeTopologyLabels = copyKeys(out.NodeTopologyLabels, node.Labels, required.Keys...)
	}
	for _, p := range state.Spec.PreferredPersistentTopology {
		out.NodeTopologyLabels = copyKeys(out.NodeTopologyLabels, node.Labels, p.Preference.Keys...)
	}
	for _, a := range state.Spec.PersistentPodAnnotations {
		out.Annotations = copyKeys(out.Annotations, pod.Annotations, a.Key)
	}
	return out, nil
}

// copyKeys copies the values of the keys that exist.
func copyKeys(into, from map[string]string, keys ...string) map[string]string {
	for _, key := range keys {
		if value, ok := from[key]; ok {
			if into == nil {
				into = map[string]string{}
			}
			into[key] = value
		}
	}
	return into
}

// desiredOrdinals returns the ordinals that the workload should have.
func (r *Reconciler) desiredOrdinals(ctx context.Context, state *kruise.PersistentPodState, w *scale.Workload) (ordinals.Range, error) {
	key := client.ObjectKey{Namespace: state.Namespace, Name: w.Name}
	switch w.GroupKind() {
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind():
		set := &appsv1.StatefulSet{}
		if err := r.Client.Get(ctx, key, set); err != nil {
			return ordinals.Range{}, fmt.Errorf("reading StatefulSet %s: %w", w.Name, err)
		}
		start := 0
		if set.Spec.Ordinals != nil {
			start = int(set.Spec.Ordinals.Start)
		}
		return ordinals.NewRange(start, int(w.Replicas), nil), nil
	case kruise.GroupVersion.WithKind("StatefulSet").GroupKind():
		set := &kruise.StatefulSet{}
		if err := r.Client.Get(ctx, key, set); err != nil {
			return ordinals.Range{}, fmt.Errorf("reading StatefulSet %s: %w", w.Name, err)
		}
		start := 0
		if r.StartOrdinal && set.Spec.Ordinals != nil {
			start = int(set.Spec.Ordinals.Start)
		}
		return ordinals.NewRange(start, int(w.Replicas), set.Spec.ReserveOrdinals), nil
	}
	return ordinals.NewRange(0, int(w.Replicas), nil), nil
}
