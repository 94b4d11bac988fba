package guards

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

	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/certs"
)

// lookAgain is how often everything is looked at without a reason: somebody may
// have changed what was written.
const lookAgain = time.Minute

// settle is how long budgets may come and go before namespaces are looked at.
const settle = 2 * time.Second

// Controller has the Writer write when something changes.
type Controller struct {
	*Writer
	// Activated has an event whenever other policies decide.
	Activated <-chan event.GenericEvent

	controller controller.Controller
	cache      cache.Cache
}

// SetupWithManager starts the Controller with a manager. It does not need the
// CRD of budgets; WatchBudgets does.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	var err error
	if c.controller, err = controller.New("protection-guards", mgr, controller.Options{
		MaxConcurrentReconciles: 1,
		Reconciler:              reconcile.Func(c.reconcile),
	}); err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	// The permission to watch is for one name, so the watch must ask for it.
	chart, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{
			&admissionv1.ValidatingWebhookConfiguration{}: {Field: fields.OneTermEqualSelector("metadata.name", certs.ValidatingConfiguration)},
		},
	})
	if err != nil {
		return fmt.Errorf("making the cache of the chart's webhooks: %w", err)
	}
	if err := mgr.Add(chart); err != nil {
		return fmt.Errorf("adding the cache of the chart's webhooks: %w", err)
	}
	c.cache = mgr.GetCache()
	for _, s := range []source.Source{
		source.Kind(chart, client.Object(&admissionv1.ValidatingWebhookConfiguration{}), anything()),
		source.Channel(c.Activated, anything()),
		source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(request())
			return nil
		}),
	} {
		if err := c.controller.Watch(s); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	return nil
}

// WatchBudgets follows which namespaces have budgets, once there is their CRD.
func (c *Controller) WatchBudgets() error {
	// Cover sees to new budgets at once. Here, thousands may come together.
	soon := func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) { q.AddAfter(request(), settle) }
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

// There is one thing to do, whatever happened.
func request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: ConfigurationName}}
}

func anything() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{request()}
	})
}

func (c *Controller) reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if err := c.Sync(ctx); err != nil && !errors.As(err, &NotInstalledError{}) {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: c.next()}, nil
}
