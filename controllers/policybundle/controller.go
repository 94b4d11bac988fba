package policybundle

import (
	"context"
	"errors"
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

// Load makes every bundle active before anything is decided: the newest files,
// or the last good ones where these are refused. A bundle that has neither is
// left out, and its status says so once this replica leads.
func (r *Reconciler) Load(ctx context.Context) error {
	list := &policy.ClusterPolicyBundleList{}
	if err := r.Keeper.Reader.List(ctx, list); err != nil {
		return fmt.Errorf("listing policy bundles: %w", err)
	}
	for i := range list.Items {
		if _, err := r.admit(ctx, &list.Items[i]); err != nil {
			var refused *Refusal
			if !errors.As(err, &refused) {
				return err
			}
			ctrl.LoggerFrom(ctx).Error(err, "A policy bundle is not enforced", "bundle", list.Items[i].Name)
		}
	}
	return nil
}

// admit makes a bundle's newest files active, or else, if none of its files
// are, the last good ones.
func (r *Reconciler) admit(ctx context.Context, b *policy.ClusterPolicyBundle) (string, error) {
	revision, err := r.Library.Admit(ctx, b.Name, files(b))
	var refused *Refusal
	if !errors.As(err, &refused) || r.Library.Active(b.Name) != "" {
		return revision, err
	}
	last, keepErr := r.Keeper.LastGood(ctx, b)
	if keepErr != nil || last == nil {
		return "", errors.Join(err, keepErr)
	}
	if _, lastErr := r.Library.Admit(ctx, b.Name, last); lastErr != nil {
		return "", fmt.Errorf("%w; the last good files are refused too: %s", err, lastErr.Error())
	}
	return "", err
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
	revision, err := r.admit(ctx, b)
	var refused *Refusal
	if err != nil && !errors.As(err, &refused) {
		return reconcile.Result{}, err
	}
	select {
	case <-r.Leads:
	default:
		return reconcile.Result{RequeueAfter: leadCheck}, nil // it may lead later, and then it writes
	}
	if err == nil {
		if err := r.Keeper.Keep(ctx, b, revision); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, r.report(ctx, b, refused)
}
