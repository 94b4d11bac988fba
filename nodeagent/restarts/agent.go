// SPDX-License-Identifier: Apache-2.0

// Package restarts carries out the ContainerRecreateRequests of a node: it reports the progress of
// containers, and stops those that the manager permits. The manager decides when each container is
// stopped; see package permit.
package restarts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/slots"
	"github.com/regatta-sh/regatta/nodeagent/stop"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

const (
	// StopsAtOnce is how many containers are stopped at once.
	StopsAtOnce = 32
	// workers is how many pods are reconciled at once: more than StopsAtOnce, so that pods without a stop need not
	// wait.
	workers = StopsAtOnce + 8
)

// Agent carries out requests. Its cache has only those of its node.
type Agent struct {
	client client.Client
	live   client.Reader
	node   *cri.Node
	events record.EventRecorder

	now     func() time.Time
	stopper stop.Stopper
	stops   *slots.Slots // of containers that are being stopped

	mu       sync.Mutex
	absences map[types.NamespacedName]absence // by the pod
}

// Option changes how an Agent works.
type Option func(*Agent)

// WithClock replaces the clock.
func WithClock(now func() time.Time) Option { return func(a *Agent) { a.now = now } }

// WithAddress sets the IP of the node, for hooks of pods that use its network.
func WithAddress(ip string) Option { return func(a *Agent) { a.stopper.Address = ip } }

// New makes an Agent. live reads from the API server.
func New(c client.Client, live client.Reader, node *cri.Node, events record.EventRecorder, opts ...Option) *Agent {
	a := &Agent{
		client: c, live: live, node: node, events: events, now: time.Now,
		stopper: stop.Stopper{Address: "127.0.0.1"}, absences: map[types.NamespacedName]absence{},
		stops: slots.New(StopsAtOnce),
	}
	for _, opt := range opts {
		opt(a)
	}
	return a
}

// SetupWithManager starts the Agent with a manager. Requests are reconciled by pod.
func (a *Agent) SetupWithManager(mgr ctrl.Manager) error {
	pod := func(_ context.Context, o client.Object) []reconcile.Request {
		r, ok := o.(*kruise.ContainerRecreateRequest)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.PodName}}}
	}
	err := requeue.CompleteController(ctrl.NewControllerManagedBy(mgr).
		Named("crr").
		Watches(&kruise.ContainerRecreateRequest{}, handler.EnqueueRequestsFromMapFunc(pod)), controller.Options{MaxConcurrentReconciles: workers}, a)
	if err != nil {
		return fmt.Errorf("adding the agent of ContainerRecreateRequests: %w", err)
	}
	return nil
}

// listRequests returns the requests of a pod.
func (a *Agent) listRequests(ctx context.Context, pod types.NamespacedName) ([]*kruise.ContainerRecreateRequest, error) {
	list := &kruise.ContainerRecreateRequestList{}
	if err := a.client.List(ctx, list, client.InNamespace(pod.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the requests of pod %s: %w", pod, err)
	}
	var out []*kruise.ContainerRecreateRequest
	for i := range list.Items {
		if list.Items[i].Spec.PodName == pod.Name {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}
