// SPDX-License-Identifier: Apache-2.0

// Package images pulls the images that the NodeImage of a node names, and reports their progress in
// its status (IMG-10).
package images

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/slots"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
//
// Pull secrets are read only in the namespace kruise-daemon-config, by a Role.

// Agent pulls the images of one node.
type Agent struct {
	client  client.Client
	secrets client.Reader
	node    *cri.Node
	events  record.EventRecorder

	now   func() time.Time
	sleep func(context.Context, time.Duration)
	slots *slots.Slots // nil for any number of pulls at once

	mu    sync.Mutex
	pulls map[key]*pull
	told  string // why no image can be pulled
	news  chan event.GenericEvent
	ctx   context.Context // the context of all pulls

	// last is the NodeImage as it was written last, until the cache shows it. Only Reconcile uses it.
	last *kruise.NodeImage

	credentials func(ctx context.Context, image string) ([]*cri.Login, error)
}

// key is an image in its list.
type key struct{ image, tag string }

// Option changes how an Agent works.
type Option func(*Agent)

// WithClock replaces the clock, and the wait between two attempts.
func WithClock(now func() time.Time, sleep func(context.Context, time.Duration)) Option {
	return func(a *Agent) { a.now, a.sleep = now, sleep }
}

// WithWorkers bounds how many images are pulled at once; any number if it is less than 1.
func WithWorkers(n int) Option {
	return func(a *Agent) {
		if n > 0 {
			a.slots = slots.New(n)
		}
	}
}

// WithCredentials adds logins of the node, such as those of its credential provider plugins, which are
// tried after those of pull secrets.
func WithCredentials(of func(ctx context.Context, image string) ([]*cri.Login, error)) Option {
	return func(a *Agent) { a.credentials = of }
}

// New makes an Agent whose pulls end with ctx. secrets must not read from a cache.
func New(ctx context.Context, c client.Client, secrets client.Reader, node *cri.Node, events record.EventRecorder, opts ...Option) *Agent {
	a := &Agent{
		client: c, secrets: secrets, node: node, events: events, now: time.Now, sleep: sleepContext,
		pulls: map[key]*pull{}, news: make(chan event.GenericEvent, 1), ctx: ctx,
	}
	for _, opt := range opts {
		opt(a)
	}
	return a
}

func sleepContext(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// SetupWithManager starts the Agent with a manager.
func (a *Agent) SetupWithManager(mgr ctrl.Manager) error {
	err := requeue.CompleteController(ctrl.NewControllerManagedBy(mgr).
		Named("imagepuller").
		For(&kruise.NodeImage{}).
		WatchesRawSource(source.Channel(a.news, &handler.EnqueueRequestForObject{})), controller.Options{MaxConcurrentReconciles: 1}, a)
	if err != nil {
		return fmt.Errorf("adding the agent of NodeImages: %w", err)
	}
	return nil
}

// StatusEvents has events for the NodeImages whose status must be written. SetupWithManager reconciles them. A caller that calls Reconcile
// itself, for several nodes in one process, must do so for each event.
func (a *Agent) StatusEvents() <-chan event.GenericEvent { return a.news }

// enqueueStatus makes the status be written again. One waiting event is enough.
func (a *Agent) enqueueStatus(node string) {
	o := &kruise.NodeImage{}
	o.Name = node
	select {
	case a.news <- event.GenericEvent{Object: o}:
	default:
	}
}
