// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/engine"
)

// defaultWorkers is how many objects a controller reconciles at once if Deps.Workers is 0.
const defaultWorkers = 3

// Deps are what a controller needs of its manager. Controllers embed them.
type Deps struct {
	// Client reads from the manager's cache, and writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Events records events of the controller's objects.
	Events record.EventRecorder
	// Engine answers decisions. It may be nil in a controller that evaluates no policies.
	Engine *engine.Engine
	// Rounds keeps the explanation of the last round of each object. If it is nil, the explanations are read by no caller.
	Rounds *explain.Store
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// Workers is how many objects are reconciled at once; 3 if 0.
	Workers int
	// StatusInterval is the time between two writes of the status of an object in which only counts
	// have changed; 0 is none. The last counts are always written.
	StatusInterval time.Duration
	// NewRateLimiter returns the rate limiter with which the objects of one controller are reconciled again after
	// an error. If it is nil, the first delay is 5 ms and the longest is a minute.
	NewRateLimiter func() workqueue.TypedRateLimiter[Request]
	// PolicyChanges has an event for each change of the policies. It may be nil.
	PolicyChanges <-chan event.GenericEvent

	writes *ownWrites
}

// WithDefaults returns the Deps with defaults for what is nil or 0, and with a Client that records the writes for ReadObject.
func (d Deps) WithDefaults() Deps {
	if d.Rounds == nil {
		d.Rounds = explain.NewStore()
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Workers == 0 {
		d.Workers = defaultWorkers
	}
	if d.writes == nil {
		d.writes = newOwnWrites(d.Now, d.Live)
		d.Client = recordingClient{d.Client, d.writes}
	}
	return d
}

// NamespaceReader returns a reader of the labels of namespaces.
func (d Deps) NamespaceReader() namespaces.Reader {
	return namespaces.Reader{Cached: d.Client, Live: d.Live}
}

// ReadObject reads an object of the kind that the controller reconciles from the cache. Where the cache does not show
// yet the last status that the controller wrote, the object has that status. The error is a 404 if the object is gone.
func (d Deps) ReadObject(ctx context.Context, name types.NamespacedName, o client.Object) error {
	err := d.Client.Get(ctx, name, o)
	switch {
	case d.writes == nil:
		return err
	case apierrors.IsNotFound(err):
		d.writes.forgetObject(o, name)
		return err
	case err != nil:
		return err
	}
	return d.writes.overlayStatus(ctx, o)
}

// RecordStatus records a write of the status of an object that another client than the Client of the Deps has done. The object
// is as the API server answered.
func (d Deps) RecordStatus(o client.Object) {
	if d.writes != nil {
		d.writes.recordWrite(o, "", nil)
	}
}

// NewController starts to build a controller with a name. A change of the policies makes it reconcile all objects of affected.
// affected is nil for a controller that evaluates no policies.
func (d Deps) NewController(mgr ctrl.Manager, name string, affected *MissedEvents) *builder.Builder {
	b := ctrl.NewControllerManagedBy(mgr).Named(name)
	if d.PolicyChanges == nil || affected == nil {
		return b
	}
	return b.WatchesRawSource(source.Channel(d.PolicyChanges, affected.EnqueueAll()))
}

// CompleteController adds the controller of a builder to its manager. Timers of its objects survive
// errors, see requeue.Retrier.
func (d Deps) CompleteController(b *builder.Builder, r Reconciler) error {
	return requeue.CompleteController(b, d.ControllerOptions(), r)
}

// ControllerOptions returns the workers and the rate limiter as options of controller-runtime.
func (d Deps) ControllerOptions() controller.Options {
	o := controller.Options{MaxConcurrentReconciles: d.Workers}
	if d.NewRateLimiter != nil {
		o.RateLimiter = d.NewRateLimiter()
	}
	return o
}

// Controller is what a manager runs.
type Controller interface {
	// SetupWithManager adds the controller, its watches and the indexes that it alone needs to a manager.
	SetupWithManager(ctx context.Context, mgr ctrl.Manager) error
}
