// SPDX-License-Identifier: Apache-2.0

// Package probes runs the probes that the NodePodProbe of a node names, and writes their
// results into its status (PPM-08, PPM-09). The manager decides what a result means for a pod.
//
// All state of the agent is in the status: an agent that starts continues from it.
package probes

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

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/slots"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

const (
	// pause is the time between two writes of the status, so that simultaneous results are written
	// together.
	pause = 300 * time.Millisecond
	// reportAgain is how old a report may get while the probe has the same result.
	reportAgain = 10 * time.Minute
	// AtOnce is how many probes run at once.
	AtOnce = 32
)

// Agent runs the probes of one node.
type Agent struct {
	client client.Client
	node   *cri.Node
	events record.EventRecorder
	now    func() time.Time
	news   chan event.GenericEvent
	ctx    context.Context // the context of all probes
	slots  *slots.Slots    // of running probes

	mu      sync.Mutex
	workers map[key]*worker
	begun   bool // whether a NodePodProbe was seen

	// last is the NodePodProbe as it was written last, until the cache shows it; written is when that was.
	// unsummed is since when only the conditions of the status are to be written, zero if they are not. Only Reconcile uses them.
	last     *v1alpha1.NodePodProbe
	written  time.Time
	unsummed time.Time
}

// key is a probe of a pod.
type key struct{ uid, name string }

// Option changes how an Agent works.
type Option func(*Agent)

// WithClock replaces the clock.
func WithClock(now func() time.Time) Option { return func(a *Agent) { a.now = now } }

// New makes an Agent whose probes end with ctx.
func New(ctx context.Context, c client.Client, node *cri.Node, events record.EventRecorder, opts ...Option) *Agent {
	a := &Agent{client: c, node: node, events: events, now: time.Now, news: make(chan event.GenericEvent, 1), ctx: ctx, workers: map[key]*worker{}, slots: slots.New(AtOnce)}
	for _, opt := range opts {
		opt(a)
	}
	return a
}

// SetupWithManager starts the Agent with a manager, whose cache has only the NodePodProbe of the node.
func (a *Agent) SetupWithManager(mgr ctrl.Manager) error {
	err := requeue.CompleteController(ctrl.NewControllerManagedBy(mgr).
		Named("podprobe").
		For(&v1alpha1.NodePodProbe{}).
		WatchesRawSource(source.Channel(a.news, &handler.EnqueueRequestForObject{})), controller.Options{MaxConcurrentReconciles: 1}, a)
	if err != nil {
		return fmt.Errorf("adding the agent of NodePodProbes: %w", err)
	}
	return nil
}

// StatusEvents has events for the NodePodProbes whose status must be written. SetupWithManager reconciles them. A caller that calls Reconcile
// itself, for several nodes in one process, must do so for each event.
func (a *Agent) StatusEvents() <-chan event.GenericEvent { return a.news }

// enqueueStatus makes the status be written. One waiting event is enough.
func (a *Agent) enqueueStatus(node string) {
	o := &v1alpha1.NodePodProbe{}
	o.Name = node
	select {
	case a.news <- event.GenericEvent{Object: o}:
	default:
	}
}
