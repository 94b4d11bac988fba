// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"

	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// followInterval is how often a bundle is reconciled without a change: an archive that was lost may
// have been stored again.
const followInterval = 30 * time.Second

// NeedLeaderElection is false: every process decides.
func (h *Host) NeedLeaderElection() bool { return false }

// Start loads the policy bundles and follows them until ctx is done. It implements
// manager.Runnable for a process that has no other controller of bundles; a process that publishes
// bundles calls LoadBundles, and SyncBundle for each.
func (h *Host) Start(ctx context.Context) error {
	for delay := retryInterval; ; delay = min(2*delay, time.Minute) { // CRDs are installed one after the other
		installed, err := h.LoadBundles(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if installed {
			return h.runControllers(ctx)
		}
		klog.InfoS("The CRDs of policy bundles are not installed; only the built-in policies decide")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
		}
	}
}

// runControllers follows the bundles of both kinds.
func (h *Host) runControllers(ctx context.Context) error {
	bundles, err := crecovery.NewCache(h.config, cache.Options{Scheme: h.scheme, Mapper: h.live.RESTMapper(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return fmt.Errorf("making a cache of policy bundles: %w", err)
	}
	runs := []func(context.Context) error{bundles.Start}
	anyName := true // names of controllers may repeat: a process may have several Hosts
	for _, kind := range []Key{{}, {Namespace: "any"}} {
		follows, err := controller.NewUnmanaged("policyhost", requeue.KeepTimers(controller.Options{
			SkipNameValidation: &anyName,
			Reconciler: reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				return h.reconcileBundle(ctx, bundles, req.NamespacedName)
			}),
		}))
		if err == nil {
			err = follows.Watch(source.Kind[client.Object](bundles, asObject(emptyBundle(kind)), &handler.EnqueueRequestForObject{}))
		}
		if err != nil {
			return fmt.Errorf("following policy bundles: %w", err)
		}
		runs = append(runs, follows.Start)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(runs))
	for _, run := range runs {
		recovery.Go("policyhost", func() { ended <- run(ctx) }, func(err error) { ended <- err })
	}
	for range runs {
		err = errors.Join(err, <-ended)
		cancel() // the controllers cannot run without each other
	}
	return err
}

// reconcileBundle makes one bundle take part as its status says, or removes it when it is gone.
func (h *Host) reconcileBundle(ctx context.Context, bundles client.Reader, key Key) (reconcile.Result, error) {
	b := emptyBundle(key)
	err := bundles.Get(ctx, key, asObject(b))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading policy bundle: %w", err)
	}
	if err != nil || b.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, h.RemoveBundle(ctx, key)
	}
	me, err := h.SyncBundle(ctx, b)
	if err == nil {
		h.logNotEnforced(b, me)
	}
	return reconcile.Result{RequeueAfter: followInterval}, err
}

func asObject(b policy.AnyPolicyBundle) client.Object { return b.(client.Object) }
