package policybundle

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// +kubebuilder:rbac:groups=policy.kruise.io,resources=clusterpolicybundles,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy.kruise.io,resources=clusterpolicybundles/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=policy.kruise.io,resources=clusterpolicybundles/finalizers,verbs=update

// Reconciler keeps a Library as the ClusterPolicyBundles say. It runs in every
// replica, since every replica decides; only the leader writes.
type Reconciler struct {
	Client  client.Client
	Library *Library
	Keeper  Keeper
	Events  record.EventRecorder
	// Leads is closed when this replica leads.
	Leads <-chan struct{}
	// RolledBack has the bundles that the engine gave up.
	RolledBack <-chan event.GenericEvent
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	everywhere := false
	return ctrl.NewControllerManagedBy(mgr).
		Named("policybundle-controller").
		For(&policy.ClusterPolicyBundle{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(r.RolledBack, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, NeedLeaderElection: &everywhere}).
		Complete(r)
}

// Reconcile makes one bundle active, or takes it out when it is gone.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &policy.ClusterPolicyBundle{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("reading policy bundle: %w", err)
		}
		return reconcile.Result{}, r.Library.Remove(ctx, req.Name)
	}
	if b.DeletionTimestamp != nil {
		return reconcile.Result{}, r.Library.Remove(ctx, b.Name)
	}
	refused, err := r.admit(ctx, b)
	if err != nil {
		return reconcile.Result{}, err
	}
	select {
	case <-r.Leads:
	default:
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	if !told(b) && (refused == nil || refused.Reason == policy.PolicyBundleRolledBackReason) {
		if err := r.Keeper.Keep(ctx, b, r.Library.Files(b.Name)); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: lookAgain}, r.report(ctx, b, refused)
}
