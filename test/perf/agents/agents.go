// SPDX-License-Identifier: Apache-2.0

// Package agents plays the node agents of all simulated nodes in one process: they are those of package nodeagent,
// with one watch for all nodes and a container runtime that only says so. What they write, and when, is what agents on
// real nodes write. The simulated kubelets are KWOK; a container that an agent stops is started again by this package.
package agents

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/agent"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/images"
	"github.com/regatta-sh/regatta/nodeagent/probes"
	"github.com/regatta-sh/regatta/nodeagent/restarts"
)

// UserAgent is that of the requests of agents, as on real nodes. Those of the simulated kubelets have another one.
const UserAgent = "kruise-daemon"

// workers is how many nodes write at once. Real agents do not wait for each other.
const workers = 64

// Options say what is simulated.
type Options struct {
	// Pull is how long a node takes to pull an image, and Restart a kubelet to start a container again.
	Pull, Restart time.Duration
	// Images, Restarts and Probes are which agents there are.
	Images, Restarts, Probes bool
	// Stopped is called with the pod of a container that an agent has stopped, if it is set.
	Stopped func(namespace, pod string)
}

// Agents are those of all nodes.
type Agents struct {
	options Options
	runtime *runtime
	node    *cri.Node // the runtime, as every agent sees it
	mgr     ctrl.Manager
	kubelet client.Client
	sink    record.EventSink
	started sync.WaitGroup
	err     error
}

// Start starts the agents, which end with ctx.
func Start(ctx context.Context, config *rest.Config, o Options) (*Agents, error) {
	a := &Agents{options: o}
	a.runtime = newRuntime(o.Pull, a.startAgain)
	socket, err := a.runtime.serve(ctx)
	if err != nil {
		return nil, err
	}
	a.node = cri.NewNode(socket)
	scheme, err := agent.NewScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent = -1, UserAgent
	a.mgr, err = ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: ctrlcache.Options{
			DefaultTransform: ctrlcache.TransformStripManagedFields(),
			ByObject: map[client.Object]ctrlcache.ByObject{
				&kruise.ContainerRecreateRequest{}: {Label: labels.SelectorFromSet(labels.Set{kruise.ContainerRecreateRequestActiveKey: "true"})},
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making the agents: %w", err)
	}
	kubelet := rest.CopyConfig(config)
	kubelet.UserAgent = "simulated-kubelet"
	if a.kubelet, err = client.New(kubelet, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	a.sink = &typedcorev1.EventSinkImpl{Interface: typed.CoreV1().Events("")}
	if err := a.setup(ctx); err != nil {
		return nil, err
	}
	a.started.Go(func() { a.err = a.mgr.Start(ctx) })
	if !a.mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("starting the agents: %w", context.Cause(ctx))
	}
	return a, nil
}

// recorder writes events as the agent of one node does: those of a node wait for each other, and for no other node's.
func (a *Agents) recorder(ctx context.Context, component, node string) record.EventRecorder {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(a.sink)
	return b.NewRecorder(a.mgr.GetScheme(), corev1.EventSource{Component: component, Host: node})
}

// Wait waits until the agents have ended, and gives the error that ended them.
func (a *Agents) Wait() error {
	a.started.Wait()
	return a.err
}

// Flap has a share of all commands give another result than the time before, from 0 to 1.
func (a *Agents) Flap(share float64) { a.runtime.setFlap(share) }

func (a *Agents) setup(ctx context.Context) error {
	if a.options.Restarts || a.options.Probes {
		if err := a.followPods(ctx); err != nil {
			return err
		}
	}
	c, o := a.mgr.GetClient(), a.options
	if o.Images {
		if err := dispatch(ctx, a.mgr, "images", &kruise.NodeImage{}, func(node string) member {
			return images.New(ctx, c, a.mgr.GetAPIReader(), a.node, a.recorder(ctx, kruise.ImagePullerComponent, node))
		}); err != nil {
			return err
		}
	}
	if o.Probes {
		if err := dispatch(ctx, a.mgr, "probes", &v1alpha1.NodePodProbe{}, func(node string) member {
			return probes.New(ctx, c, a.node, a.recorder(ctx, probes.Component, node))
		}); err != nil {
			return err
		}
	}
	if o.Restarts { // which works pod by pod, so one is enough
		r := restarts.New(c, a.mgr.GetAPIReader(), a.node, a.mgr.GetEventRecorderFor(kruise.ContainerRecreateRequestComponent))
		return r.SetupWithManager(a.mgr)
	}
	return nil
}

// followPods gives the runtime the containers of all pods.
func (a *Agents) followPods(ctx context.Context) error {
	informer, err := a.mgr.GetCache().GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	with := func(f func(*corev1.Pod), o any) {
		if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		if pod, ok := o.(*corev1.Pod); ok {
			f(pod)
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { with(a.runtime.see, o) },
		UpdateFunc: func(_, o any) { with(a.runtime.see, o) },
		DeleteFunc: func(o any) { with(a.runtime.lose, o) },
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return nil
}

// member is the agent of one node for one kind.
type member interface {
	reconcile.Reconciler
	StatusEvents() <-chan event.GenericEvent
}

// dispatch has each object of a kind, which is named after its node, reconciled by an agent of its own.
func dispatch(ctx context.Context, mgr ctrl.Manager, what string, kind client.Object, begin func(node string) member) error {
	var mu sync.Mutex
	all := map[string]member{}
	news := newsOf()
	of := func(node string) member {
		mu.Lock()
		defer mu.Unlock()
		m := all[node]
		if m == nil {
			m = begin(node)
			all[node] = m
			go news.forward(ctx, m.StatusEvents())
		}
		return m
	}
	err := ctrl.NewControllerManagedBy(mgr).Named(what).For(kind).
		WatchesRawSource(source.Channel(news.all, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconcile.Func(func(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
			return of(q.Name).Reconcile(ctx, q)
		}))
	if err != nil {
		return fmt.Errorf("adding the agents of %s: %w", what, err)
	}
	return nil
}

// news collects what all agents of a kind have to write.
type news struct{ all chan event.GenericEvent }

func newsOf() news { return news{make(chan event.GenericEvent)} }

func (n news) forward(ctx context.Context, from <-chan event.GenericEvent) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-from:
			select {
			case <-ctx.Done():
				return
			case n.all <- e:
			}
		}
	}
}
