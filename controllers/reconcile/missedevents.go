// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/regatta-sh/regatta/engine/recovery"
)

// Queue is the queue of a controller.
type Queue = workqueue.TypedRateLimitingInterface[Request]

// ListFunc returns requests for all objects that a controller may have to reconcile after an event.
type ListFunc func(context.Context) ([]Request, error)

// FindFunc returns requests for the objects that an event of another object concerns. Beside an error it returns those that it
// found.
type FindFunc func(context.Context, client.Object) ([]Request, error)

const (
	// firstRetry and longestRetry are the delays after which objects are listed again. Each is twice as long as the one before.
	firstRetry   = 100 * time.Millisecond
	longestRetry = 10 * time.Second
	// betweenLists is how long after all objects were enqueued they are enqueued again, since the objects of one event may not be
	// readable for long.
	betweenLists = time.Minute
	// listTimeout is how long one list may take. A cache that is stopped before it has the objects does not return.
	listTimeout = 10 * time.Second
)

// MissedEvents makes up for events whose objects a handler could not read, since no event tells of them again. Once the objects of the
// controller can be listed, it enqueues all of them. So no event is lost, however many come meanwhile, and none of them is kept.
type MissedEvents struct {
	controller string
	list       ListFunc
	delay      time.Duration

	mu sync.Mutex
	// queue is that of the last event that was missed.
	queue Queue
	// running is true while a goroutine tries to list the objects.
	running bool
	// missed is true if an event was missed since the last list began.
	missed bool
}

// NewMissedEvents makes up for the missed events of a controller with a name. list returns requests for all its objects.
func NewMissedEvents(controller string, list ListFunc) *MissedEvents {
	return &MissedEvents{controller: controller, list: list}
}

// WithDelay returns a MissedEvents of the same controller for events whose objects are enqueued after a delay.
func (m *MissedEvents) WithDelay(delay time.Duration) *MissedEvents {
	return &MissedEvents{controller: m.controller, list: m.list, delay: delay}
}

// EnqueueFound returns a handler that enqueues the objects that find returns, for each state of the object of an event. A panic of find
// counts as an error.
func (m *MissedEvents) EnqueueFound(find FindFunc) handler.EventHandler {
	enqueue := func(ctx context.Context, q Queue, states ...client.Object) {
		enqueued := map[Request]bool{}
		for _, o := range states {
			var found []Request
			err := recovery.Call(m.controller, func() (err error) { found, err = find(ctx, o); return err })
			for _, request := range found {
				if !enqueued[request] {
					q.Add(request)
				}
				enqueued[request] = true
			}
			if err != nil {
				m.EnqueueAllLater(ctx, q, err)
			}
		}
	}
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, q Queue) { enqueue(ctx, q, e.Object) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q Queue) { enqueue(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q Queue) { enqueue(ctx, q, e.Object) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q Queue) { enqueue(ctx, q, e.Object) },
	}
}

// EnqueueAll returns a handler that enqueues all objects of the controller.
func (m *MissedEvents) EnqueueAll() handler.EventHandler {
	return m.EnqueueFound(func(ctx context.Context, _ client.Object) ([]Request, error) { return m.list(ctx) })
}

// EnqueueInNamespace returns a handler that enqueues the objects of the controller in the namespace of an event.
func (m *MissedEvents) EnqueueInNamespace() handler.EventHandler {
	return m.EnqueueFound(func(ctx context.Context, namespace client.Object) (out []Request, err error) {
		all, err := m.list(ctx)
		for _, request := range all {
			if request.Namespace == namespace.GetName() {
				out = append(out, request)
			}
		}
		return out, err
	})
}

// EnqueueAllLater is called by a handler that could not read which objects an event concerns. It enqueues all objects of the controller
// as soon as they can be listed, but at most once a minute, unless the queue is shut down before.
func (m *MissedEvents) EnqueueAllLater(ctx context.Context, q Queue, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue, m.missed = q, true
	if m.running { // the first event that was missed was logged, and there may be thousands of others
		return
	}
	m.running = true
	ctrl.LoggerFrom(ctx).Error(err, "Finding the objects that an event concerns; once they can be listed, all objects of the controller are reconciled", "controller", m.controller)
	ctx = context.WithoutCancel(ctx) // that of an event ends with its handler
	recovery.GoUntilDone(ctx, m.controller, func(ctx context.Context) {
		m.noteFailure() // of the run before, if there was one and it panicked
		m.listUntilDone(ctx)
	})
}

// listUntilDone enqueues all objects once they can be listed, and again if events were missed since the list began.
func (m *MissedEvents) listUntilDone(ctx context.Context) {
	for delay := firstRetry; ; {
		time.Sleep(delay)
		q, ok := m.beginList()
		if !ok {
			return
		}
		found, err := m.listOnce(ctx)
		if err != nil {
			delay = min(2*delay, longestRetry)
			ctrl.LoggerFrom(ctx).Error(err, "Listing all objects of a controller after an event that was missed; they are listed again", "controller", m.controller, "after", delay)
			m.noteFailure()
			continue
		}
		for _, request := range found {
			q.AddAfter(request, m.delay)
		}
		delay = betweenLists
	}
}

// beginList returns the queue for the next list. It returns false, and the goroutine ends, if no event was missed since the last list
// began, or if no worker takes objects from the queue any more.
func (m *MissedEvents) beginList() (Queue, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.missed || m.queue.ShuttingDown() {
		m.running = false
		return nil, false
	}
	m.missed = false
	return m.queue, true
}

// noteFailure has the objects listed once more.
func (m *MissedEvents) noteFailure() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missed = true
}

// listOnce lists the objects. A panic is an error.
func (m *MissedEvents) listOnce(ctx context.Context) (found []Request, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	err = recovery.Call(m.controller, func() (err error) { found, err = m.list(ctx); return err })
	return found, err
}
