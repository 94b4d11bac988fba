// SPDX-License-Identifier: Apache-2.0

package persistentpodstate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// listAgain is how often the white list is read.
const listAgain = 10 * time.Second

// customs runs a Generator for each kind of the white list. Only the metadata of their objects is
// read. The administrator who lists a kind grants the manager get, list and watch on it.
type customs struct {
	*Reconciler
	mgr ctrl.Manager
	// running has the functions that end the controllers, by kind.
	running map[schema.GroupVersionKind]context.CancelFunc
}

// Start implements manager.Runnable. It runs only in the leader, as controllers do.
func (c *customs) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := c.syncWhiteList(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Following the white list of kinds", "key", kruise.PersistentPodStateWhiteListKey)
		}
	}, listAgain)
	return nil
}

// syncWhiteList starts a Generator for each kind of the white list, and ends those of kinds that are
// no longer in it. A list that cannot be read changes nothing.
func (c *customs) syncWhiteList(ctx context.Context) error {
	listed, err := c.Configuration.ListedWorkloads(ctx, kruise.PersistentPodStateWhiteListKey)
	if err != nil {
		return err
	}
	wanted := map[schema.GroupVersionKind]bool{}
	for _, kind := range listed {
		if !kruise.RemembersPods(kind.GroupKind()) { // StatefulSets have controllers of their own
			wanted[kind] = true
		}
	}
	for _, kind := range slices.Collect(maps.Keys(c.running)) {
		if wanted[kind] {
			continue
		}
		c.running[kind]()
		delete(c.running, kind)
		if err := c.mgr.GetCache().RemoveInformer(ctx, newPartialObject(kind)); err != nil {
			return fmt.Errorf("forgetting objects of %s: %w", kind, err)
		}
	}
	for kind := range wanted {
		if c.running[kind] != nil {
			continue
		}
		_, err := c.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) { // its CRD may be installed later
			continue
		}
		if err == nil {
			err = c.startGenerator(ctx, kind)
		}
		if err != nil {
			return fmt.Errorf("following %s of the white list: %w", kind, err)
		}
	}
	return nil
}

// startGenerator starts the Generator of a kind.
func (c *customs) startGenerator(ctx context.Context, kind schema.GroupVersionKind) error {
	o := c.ControllerOptions()
	o.Reconciler = &Generator{Client: c.Client, New: func() client.Object { return newPartialObject(kind) }, Kind: kind}
	o.SkipNameValidation = ptr.To(true) // a kind may be removed from the list, and added again
	o.CacheSyncTimeout = forever
	worker, err := controller.NewUnmanaged("persistentpodstate-of-"+kind.GroupKind().String(), requeue.KeepTimers(o))
	if err != nil {
		return err
	}
	for _, from := range []source.Source{
		source.Kind[client.Object](c.mgr.GetCache(), newPartialObject(kind), &handler.EnqueueRequestForObject{}, requestPredicate()),
		source.Kind[client.Object](c.mgr.GetCache(), &kruise.PersistentPodState{}, handler.EnqueueRequestsFromMapFunc(ownerOf(kind.GroupKind())), reconcile.UserChanges()),
	} {
		if err := worker.Watch(from); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancel(ctx)
	c.running[kind] = end
	recovery.Go("persistentpodstate", func() {
		if err := worker.Start(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "The controller of a kind of the white list ended", "kind", kind)
		}
	}, nil)
	return nil
}

// forever is how long a controller waits until the manager may list a kind: the permission may
// be granted at any time, and the log of the cache says what is missing.
const forever = 100 * 365 * 24 * time.Hour

// ownerOf finds the object of a kind that controls another one. The handler of controller-runtime
// requires kinds that the scheme has.
func ownerOf(kind schema.GroupKind) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		owner := metav1.GetControllerOf(o)
		if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != kind {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}}}
	}
}

func newPartialObject(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}
