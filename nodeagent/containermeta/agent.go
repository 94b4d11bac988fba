// SPDX-License-Identifier: Apache-2.0

// Package containermeta records on the pods of a node what their containers really run (PL-07), and
// restarts containers whose env reads labels or annotations that an update in place has changed
// (PL-06).
//
// All state about containers is in the annotation, which names runs. So an agent that is restarted
// continues from it, and never ends a run twice.
package containermeta

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/slots"
	"github.com/regatta-sh/regatta/nodeagent/stop"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Component is the name of the agent in events of pods.
const Component = "kruise-daemon-containermeta"

const (
	// StopsAtOnce is how many containers are being stopped at a time.
	StopsAtOnce = 32
	// workers is how many pods are reconciled at once: more than StopsAtOnce, so that pods without a stop need not
	// wait.
	workers = StopsAtOnce + 8
)

// Agent follows the pods of one node.
type Agent struct {
	client client.Client
	live   client.Reader
	node   *cri.Node
	events record.EventRecorder

	now      func() time.Time
	restarts bool
	stopper  stop.Stopper
	stops    *slots.Slots // of containers that are being stopped

	mu      sync.Mutex
	history map[types.NamespacedName]*history
}

// Option changes how an Agent works.
type Option func(*Agent)

// WithClock replaces the clock.
func WithClock(now func() time.Time) Option { return func(a *Agent) { a.now = now } }

// WithRestarts makes the Agent restart containers for their env (gate InPlaceUpdateEnvFromMetadata).
func WithRestarts(on bool) Option { return func(a *Agent) { a.restarts = on } }

// WithAddress sets the IP of the node, for hooks of pods that use its network.
func WithAddress(ip string) Option { return func(a *Agent) { a.stopper.Address = ip } }

// New makes an Agent. live reads from the API server.
func New(c client.Client, live client.Reader, node *cri.Node, events record.EventRecorder, opts ...Option) *Agent {
	a := &Agent{
		client: c, live: live, node: node, events: events, now: time.Now,
		stopper: stop.Stopper{Address: "127.0.0.1"}, history: map[types.NamespacedName]*history{},
		stops: slots.New(StopsAtOnce),
	}
	for _, opt := range opts {
		opt(a)
	}
	return a
}

// SetupWithManager starts the Agent with a manager, whose cache has the pods of the node and
// no others.
func (a *Agent) SetupWithManager(mgr ctrl.Manager) error {
	followed := predicate.NewPredicateFuncs(func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && runtimemeta.IsTracked(pod)
	})
	err := requeue.CompleteController(ctrl.NewControllerManagedBy(mgr).
		Named("containermeta").
		For(&corev1.Pod{}, builder.WithPredicates(followed)), controller.Options{MaxConcurrentReconciles: workers}, a)
	if err != nil {
		return fmt.Errorf("adding the agent of container metadata: %w", err)
	}
	return nil
}

// forgetPod drops what is remembered of a pod that is gone.
func (a *Agent) forgetPod(pod types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.history, pod)
}

// isRecreated reports whether an error is about a pod that is gone, or that was replaced by another
// one of the same name.
func isRecreated(ctx context.Context, c client.Reader, pod *corev1.Pod) bool {
	now := &corev1.Pod{}
	err := c.Get(ctx, client.ObjectKeyFromObject(pod), now)
	return client.IgnoreNotFound(err) == nil && now.UID != pod.UID
}
