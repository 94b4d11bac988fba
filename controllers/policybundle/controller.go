// SPDX-License-Identifier: Apache-2.0

// Package policybundle publishes the policies of ClusterPolicyBundles and
// PolicyBundles. The leader fetches a bundle, takes it through the engine's gate,
// stores what passed, and names it in the status. Every replica, the leader among them, follows what
// the status names, as package policyhost does in any process. If the newest revision is refused, the
// last good one stays.
package policybundle

import (
	"context"
	"errors"
	"fmt"
	"reflect"

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
	"github.com/regatta-sh/regatta/controllers/policyhost"
	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// +kubebuilder:rbac:groups=policy.kruise.io,resources=clusterpolicybundles;policybundles,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy.kruise.io,resources=clusterpolicybundles/status;policybundles/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=policy.kruise.io,resources=clusterpolicybundles/finalizers;policybundles/finalizers,verbs=update

// Key names a bundle. The namespace is empty for bundles of the platform.
type Key = policyhost.Key

// Reconciler publishes bundles if this replica leads, and follows published bundles in every replica.
type Reconciler struct {
	Client client.Client
	// Reader reads from the API server, since the cache may not run yet.
	Reader    client.Reader
	Publisher *Publisher
	Host      *policyhost.Host
	Events    record.EventRecorder
	// Leads is closed when this replica leads.
	Leads <-chan struct{}
	// Alive returns the names of the replicas that exist; if it is nil, all replicas count as alive.
	Alive func(context.Context) ([]string, error)
}

// workers is how many bundles are reconciled at once, so that a bundle whose registry does not answer, or whose tests take long, does
// not block the others. Most workers may wait for the turn of a check, so there are many: a bundle that is deleted or rolled back must
// not wait behind them.
const workers = 16

// SetupWithManager starts the Reconciler with a manager, for both kinds.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.Publisher.WriteStatus = r.writeCheck
	everywhere := false
	given := map[string]chan event.GenericEvent{}
	for kind, empty := range bundleKinds() {
		given[kind] = make(chan event.GenericEvent)
		controls := ctrl.NewControllerManagedBy(mgr).
			Named(kind+"-controller").
			For(asObject(empty()), builder.WithPredicates(predicate.Funcs{UpdateFunc: r.needsReconcile})).
			WatchesRawSource(source.Channel(given[kind], &handler.EnqueueRequestForObject{}))
		options := controller.Options{MaxConcurrentReconciles: workers, NeedLeaderElection: &everywhere}
		if err := requeue.CompleteController(controls, options, reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			return r.Reconcile(ctx, req.NamespacedName)
		})); err != nil {
			return fmt.Errorf("adding the controller of %ss: %w", kind, err)
		}
	}
	return mgr.Add(crecovery.WrapRunnable("policybundle", everyReplica(func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case key := <-r.Host.RolledBack():
				b := emptyBundle(key)
				b.SetNamespace(key.Namespace)
				b.SetName(key.Name)
				select {
				case given[kindName(key)] <- event.GenericEvent{Object: asObject(b)}:
				case <-ctx.Done():
				}
			}
		}
	})))
}

// everyReplica is a Runnable that runs in every replica, whether it leads or not.
type everyReplica func(context.Context) error

func (f everyReplica) Start(ctx context.Context) error { return f(ctx) }

func (everyReplica) NeedLeaderElection() bool { return false }

const (
	platformKind = "clusterpolicybundle"
	tenantKind   = "policybundle"
)

func bundleKinds() map[string]func() policy.AnyPolicyBundle {
	return map[string]func() policy.AnyPolicyBundle{
		platformKind: func() policy.AnyPolicyBundle { return &policy.ClusterPolicyBundle{} },
		tenantKind:   func() policy.AnyPolicyBundle { return &policy.PolicyBundle{} },
	}
}

// emptyBundle is an empty object of the kind of a key.
func emptyBundle(key Key) policy.AnyPolicyBundle { return bundleKinds()[kindName(key)]() }

func kindName(key Key) string {
	if key.Namespace != "" {
		return tenantKind
	}
	return platformKind
}

// needsReconcile ignores updates that only change what replicas run, unless a replica rolled a
// revision back.
func (r *Reconciler) needsReconcile(e event.UpdateEvent) bool {
	old, ok := e.ObjectOld.(policy.AnyPolicyBundle)
	now, ok2 := e.ObjectNew.(policy.AnyPolicyBundle)
	if !ok || !ok2 {
		return true
	}
	return old.GetGeneration() != now.GetGeneration() || (old.GetDeletionTimestamp() == nil) != (now.GetDeletionTimestamp() == nil) ||
		publishedState(old) != publishedState(now) || replicaState(old) != replicaState(now)
}

// publishedState is the part of a bundle that replicas follow.
func publishedState(b policy.AnyPolicyBundle) string {
	out := ""
	for _, a := range []*policy.PolicyArtifact{b.GetStatus().Active, b.GetStatus().Candidate, b.GetStatus().Withheld} {
		if a == nil {
			out += "-;"
			continue
		}
		out += fmt.Sprintf("%s %s %v;", a.Digest, a.Mode, a.Namespaces)
	}
	return out
}

// replicaState is the part of the replicas' entries that the leader acts on.
func replicaState(b policy.AnyPolicyBundle) string {
	out := ""
	for _, p := range b.GetStatus().Replicas {
		out += fmt.Sprintf("%s %s %s %s %t;", p.Name, p.Revision, p.RolledBack, p.Strict, p.Problem != "")
	}
	return out
}

// Reconcile brings one bundle up to date, or removes it when it is gone.
func (r *Reconciler) Reconcile(ctx context.Context, key Key) (reconcile.Result, error) {
	b := emptyBundle(key)
	err := r.Client.Get(ctx, key, asObject(b))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading policy bundle: %w", err)
	}
	if err != nil || b.GetDeletionTimestamp() != nil {
		r.Publisher.ForgetBundle(key)
		return reconcile.Result{}, r.Host.RemoveBundle(ctx, key)
	}
	leads, before := r.isLeader(), b
	if leads {
		if before, err = r.publishStatus(ctx, b); err != nil {
			return reconcile.Result{}, err
		}
	}
	// The leader decides, so it follows a bundle before it writes the status.
	me, failed := r.Host.SyncBundle(ctx, b)
	if leads {
		r.notePoints(b)
		judgeReplicas(b, me)
		if err := r.writeStatus(ctx, before, b); err != nil {
			return reconcile.Result{}, err
		}
		failed = errors.Join(failed, r.Publisher.PruneArchives(ctx, b))
	}
	return reconcile.Result{RequeueAfter: requeueAfter(b.DesiredSpec())}, errors.Join(failed, r.writeReplica(ctx, b, me))
}

// readLive reads a bundle anew, past the cache. It decodes into an empty object: decoding keeps what an answer leaves out, such as a
// candidate that was taken back.
func (r *Reconciler) readLive(ctx context.Context, b policy.AnyPolicyBundle) error {
	found := emptyBundle(keyOf(b))
	if err := r.Reader.Get(ctx, keyOf(b), asObject(found)); err != nil {
		return err
	}
	reflect.ValueOf(b).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}

// publishStatus computes the status of a bundle, and returns the bundle as it was before.
func (r *Reconciler) publishStatus(ctx context.Context, b policy.AnyPolicyBundle) (before policy.AnyPolicyBundle, err error) {
	// Read from the API server: a bundle that was published a moment ago must not be published again.
	if err := r.readLive(ctx, b); err != nil {
		return nil, fmt.Errorf("reading policy bundle: %w", err) // if it is gone the next look finds that
	}
	if err := r.pruneReplicas(ctx, b); err != nil {
		return nil, err
	}
	before = copyBundle(b)
	err = r.Publisher.PublishStatus(ctx, b)
	// The check has ended, whatever its result. The status is compared with the one that has the check as it was
	// written meanwhile.
	ready := findCondition(b, policy.PolicyBundleReady)
	if c := b.GetStatus().Checking; c != nil && (c.Phase != policy.PolicyCheckGivenUp || ready == nil || ready.Reason != policy.PolicyBundleCheckNeverEndedReason) {
		if err != nil {
			r.endCheck(ctx, b, err)
			return before, err
		}
		before.GetStatus().Checking = c
		b.GetStatus().Checking = nil
	}
	return before, err
}

func (r *Reconciler) isLeader() bool {
	select {
	case <-r.Leads:
		return true
	default:
		return false
	}
}
