// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/certs"
	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// lookAgain is how often the configurations are compared without an event: another client may
// have changed them.
const lookAgain = time.Minute

// settle is how long changes of budgets are gathered before the configurations are written.
const settle = 2 * time.Second

// Controller calls the Writer when something changes.
type Controller struct {
	*Writer
	// Activated has an event whenever other policies become active.
	Activated <-chan event.GenericEvent

	controller controller.Controller
	cache      cache.Cache
}

// SetupWithManager starts the Controller with a manager. It does not need the
// CRD of budgets; WatchBudgets does.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	var err error
	if c.controller, err = controller.New("protection-guards", mgr, requeue.KeepTimers(controller.Options{
		MaxConcurrentReconciles: 1,
		Reconciler:              reconcile.Func(c.reconcileConfigs),
	})); err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	chart, err := newNamedCache(mgr, certs.ValidatingConfiguration, &admissionv1.ValidatingWebhookConfiguration{})
	if err != nil {
		return err
	}
	own, err := newNamedCache(mgr, ConfigurationName, &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{})
	if err != nil {
		return err
	}
	c.cache = mgr.GetCache()
	c.setWatchedReader(own)
	for _, s := range []source.Source{
		source.Kind(chart, client.Object(&admissionv1.ValidatingWebhookConfiguration{}), enqueueAlways()),
		source.Kind(own, client.Object(&admissionv1.ValidatingWebhookConfiguration{}), enqueueAlways()),
		source.Kind(own, client.Object(&admissionv1.MutatingWebhookConfiguration{}), enqueueCoalesced()),
		source.Channel(c.Activated, enqueueAlways()),
		source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(configRequest())
			return nil
		}),
	} {
		if err := c.controller.Watch(s); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	return nil
}

// newNamedCache is a cache of objects with one name: the permission to watch is limited to that name,
// so the watch must select it.
func newNamedCache(mgr ctrl.Manager, name string, objects ...client.Object) (cache.Cache, error) {
	by := map[client.Object]cache.ByObject{}
	for _, o := range objects {
		by[o] = cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)}
	}
	c, err := crecovery.NewCache(mgr.GetConfig(), cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), ByObject: by})
	if err != nil {
		return nil, fmt.Errorf("making the cache of %s: %w", name, err)
	}
	if err := mgr.Add(crecovery.WrapRunnable("webhookconfig", onEveryReplica{c})); err != nil {
		return nil, fmt.Errorf("adding the cache of %s: %w", name, err)
	}
	return c, nil
}

// onEveryReplica is a cache that a manager runs without leader election: the webhooks of every replica
// read it. A cache with options by object does not declare that itself.
type onEveryReplica struct{ cache.Cache }

// NeedLeaderElection is false.
func (onEveryReplica) NeedLeaderElection() bool { return false }

// WatchBudgets follows which namespaces have budgets, once their CRD is installed.
func (c *Controller) WatchBudgets() error {
	// CoverNamespace handles new budgets at once. Here thousands of events may arrive together.
	soon := func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) { q.AddAfter(configRequest(), settle) }
	comings := handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(q)
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(q)
		},
	}
	if err := c.controller.Watch(source.Kind(c.cache, client.Object(&policyv1beta1.PodUnavailableBudget{}), comings)); err != nil {
		return fmt.Errorf("watching budgets: %w", err)
	}
	return nil
}

// WatchSidecarSets follows which pods SidecarSets select, once their CRD is installed.
func (c *Controller) WatchSidecarSets() error {
	// AwaitSidecarSet handles new SidecarSets at once. Here a thousand events may arrive together.
	changes := enqueueCoalesced()
	update := changes.UpdateFunc
	changes.UpdateFunc = func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
			update(ctx, e, q)
		}
	}
	if err := c.controller.Watch(source.Kind(c.cache, client.Object(&kruise.SidecarSet{}), changes)); err != nil {
		return fmt.Errorf("watching SidecarSets: %w", err)
	}
	return nil
}

// WatchPersistentPodStates follows which namespaces have PersistentPodStates, once their CRD is installed.
func (c *Controller) WatchPersistentPodStates() error {
	return c.watchKind(&kruise.PersistentPodState{})
}

// watchKind reconciles whenever an object of a kind is created or deleted.
func (c *Controller) watchKind(kind client.Object) error {
	comings := handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			q.Add(configRequest()) // pods may be created right after it
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			q.AddAfter(configRequest(), settle)
		},
	}
	if err := c.controller.Watch(source.Kind(c.cache, kind, comings)); err != nil {
		return fmt.Errorf("watching %T: %w", kind, err)
	}
	return nil
}

// WatchSpreads follows which namespaces have WorkloadSpreads, once their CRD is installed.
func (c *Controller) WatchSpreads() error {
	comings := handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			q.Add(configRequest()) // pods may be created right after it
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			q.AddAfter(configRequest(), settle)
		},
	}
	if err := c.controller.Watch(source.Kind(c.cache, client.Object(&kruise.WorkloadSpread{}), comings)); err != nil {
		return fmt.Errorf("watching WorkloadSpreads: %w", err)
	}
	return nil
}

// configRequest is the only request, for all events.
func configRequest() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: ConfigurationName}}
}

func enqueueAlways() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{configRequest()}
	})
}

// enqueueCoalesced enqueues after a delay, so that simultaneous events are handled together.
func enqueueCoalesced() handler.Funcs {
	later := func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) { q.AddAfter(configRequest(), settle) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(q)
		},
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(q)
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(q)
		},
	}
}

func (c *Controller) reconcileConfigs(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if err := c.SyncConfigurations(ctx); err != nil && !errors.As(err, &NotInstalledError{}) {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: c.requeueAfter()}, nil
}
