// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/podunavailablebudget"
	"github.com/regatta-sh/regatta/controllers/workload/invariant"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// cluster is an API server in memory with one workload, and the cache of the
// controller.
type cluster struct {
	server client.WithWatch
	now    func() time.Time
	prefix string // of the UIDs that are assigned
	uids   int
	// slow is true if the cache lags behind, and pods and claims stay while they
	// terminate. Otherwise the cache shows each write at once, and deleted objects are
	// gone at once.
	slow bool

	kind     rollout.Kind
	typ      rollout.Type
	workload client.Object
	wanted   rollout.Spec // the spec of asker, which is the workload as it was last read
	asker    client.Object

	objects objects // as the API server has them
	cache   objects // as the cache shows them; objects itself unless slow
	shown   objects // the objects of which cache has copies, if slow
	pending []change
	lists   map[reflect.Type]reflect.Type // of list types to types
	indexes map[index]client.IndexerFunc
	nodes   []*corev1.Node

	watchers []watcher            // of pods
	nodesTo  handler.EventHandler // of a kind that reads nodes; nil for others
	queue    queue
	// admits calls the webhooks before a write to a pod; nil for none.
	admits *admissionChain
	// refused is called after each write to a pod that was refused.
	refused func(Refusal)
	// asked is called for each write of the controller to a pod. now is nil for a
	// deletion, was for a creation.
	asked func(before invariant.Observation, was, now *corev1.Pod)
	// requested is called for each restart that the controller requests; nil for nothing.
	requested func(*kruise.ContainerRecreateRequest)
	// faults injects faults into the writes of the controller; nil for none.
	faults *faults
	// unreachable reports whether reads past a slow cache fail.
	unreachable func() bool

	witness *invariant.Checker
	// sight is the last observation; nil if something may have changed since.
	sight  *invariant.Observation
	seenAt time.Time
}

// watcher handles events of pods, and adds to a queue.
type watcher struct {
	handler.EventHandler
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// queue notes that there is something to do. No worker reads it.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	dirty bool
}

func (q *queue) Add(reconcile.Request) { q.dirty = true }

// index identifies an index of a type.
type index struct {
	of    reflect.Type
	field string
}

// indexer adds indexes to a cache, and to a server that is not built yet.
type indexer struct {
	*fake.ClientBuilder
	indexes map[index]client.IndexerFunc
}

func (i indexer) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(o, field, extract)
	i.indexes[index{reflect.TypeOf(o), field}] = extract
	return nil
}

func newCluster(ctx context.Context, f ClusterState, kind rollout.Kind, now func() time.Time) (*cluster, error) {
	c, err := emptyCluster(ctx, kind, now)
	if err != nil {
		return nil, err
	}
	c.prefix, c.nodes = fmt.Sprint(now().Unix(), "-"), f.Nodes
	c.workload = f.Workload.DeepCopyObject().(client.Object)
	tracked := []client.Object{c.workload}
	for _, p := range f.Pods {
		if p.DeletionTimestamp == nil { // pods that terminate do not matter
			tracked = append(tracked, p.DeepCopy())
		}
	}
	for _, r := range f.Revisions {
		tracked = append(tracked, r.DeepCopy())
	}
	if c.typ.NodeOf != nil {
		for _, n := range f.Nodes {
			tracked = append(tracked, n.DeepCopy())
		}
	}
	for _, claim := range f.Claims {
		tracked = append(tracked, claim.DeepCopy())
	}
	for _, o := range tracked {
		if err := c.storeObject(ctx, o); err != nil {
			return nil, err
		}
		c.objects.setObject(o, o)
	}
	for _, budget := range f.Budgets {
		if err := c.storeObject(ctx, budget.DeepCopy()); err != nil {
			return nil, err
		}
	}
	if f.Workload.GetNamespace() != "" {
		if err := c.storeObject(ctx, namespaceOf(f)); err != nil {
			return nil, err
		}
	}
	for _, o := range f.Others {
		if err := c.storeObject(ctx, o.DeepCopyObject().(client.Object)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// namespaceOf returns the namespace of the workload.
func namespaceOf(f ClusterState) *corev1.Namespace {
	ns := &corev1.Namespace{}
	if f.Namespace != nil {
		ns = f.Namespace.DeepCopy()
	}
	ns.Name, ns.UID, ns.Labels = f.Workload.GetNamespace(), "namespace", labelsOf(f)
	return ns
}

// emptyCluster returns a cluster without objects.
func emptyCluster(ctx context.Context, kind rollout.Kind, now func() time.Time) (*cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, kruise.AddToScheme, policy.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making a scheme: %w", err)
		}
	}
	c := &cluster{now: now, kind: kind, typ: kind.WorkloadType(), objects: objects{}, lists: map[reflect.Type]reflect.Type{}, indexes: map[index]client.IndexerFunc{}, witness: invariant.New(kind)}
	c.cache = c.objects
	for of, o := range map[client.ObjectList]client.Object{
		&corev1.PodList{}: &corev1.Pod{}, &corev1.PersistentVolumeClaimList{}: &corev1.PersistentVolumeClaim{},
		&appsv1.ControllerRevisionList{}: &appsv1.ControllerRevision{}, &kruise.ContainerRecreateRequestList{}: &kruise.ContainerRecreateRequest{}, c.typ.NewList(): c.typ.New(),
	} {
		c.objects[reflect.TypeOf(o)] = map[string]client.Object{}
		c.lists[reflect.TypeOf(of)] = reflect.TypeOf(o)
	}
	if c.typ.NodeOf != nil { // the kind reads nodes
		c.objects[reflect.TypeFor[*corev1.Node]()] = map[string]client.Object{}
		c.lists[reflect.TypeFor[*corev1.NodeList]()] = reflect.TypeFor[*corev1.Node]()
	}
	// No client of the simulation uses server-side apply. Tracking field managers
	// would take longer than all the rest of a write.
	store := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(store).WithStatusSubresource(&corev1.Pod{}, c.typ.New(), &policy.PodUnavailableBudget{})
	if err := rollout.AddIndexes(ctx, indexer{b, c.indexes}); err != nil {
		return nil, err
	}
	if err := podunavailablebudget.AddIndexes(ctx, indexer{b, c.indexes}); err != nil {
		return nil, err
	}
	c.server = b.Build()
	return c, nil
}

// storeObject writes an object as it is, with its status.
func (c *cluster) storeObject(ctx context.Context, o client.Object) error {
	whole := o.DeepCopyObject().(client.Object)
	o.SetResourceVersion("")
	if o.GetUID() == "" {
		o.SetUID(c.nextUID())
	}
	if err := c.server.Create(ctx, o); err != nil {
		return fmt.Errorf("putting %T %s into the fleet: %w", o, o.GetName(), err)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		o.Status = whole.(*corev1.Pod).Status
	case *policy.PodUnavailableBudget:
		o.Status = whole.(*policy.PodUnavailableBudget).Status
	default:
		if reflect.TypeOf(o) != reflect.TypeOf(c.workload) {
			return nil
		}
		reflect.ValueOf(c.typ.Status(o)).Elem().Set(reflect.ValueOf(c.typ.Status(whole)).Elem())
	}
	return c.server.Status().Update(ctx, o)
}

func (c *cluster) nextUID() types.UID {
	c.uids++
	return types.UID(fmt.Sprintf("%s%06d", c.prefix, c.uids))
}

// podsByName are all pods, by name.
func (c *cluster) podsByName() map[string]client.Object {
	return c.objects[reflect.TypeFor[*corev1.Pod]()]
}

// findPod returns the pod with a name, nil if there is none.
func (c *cluster) findPod(name string) *corev1.Pod {
	p, _ := c.podsByName()[name].(*corev1.Pod)
	return p
}

// sortedPods are the pods, sorted by name.
func (c *cluster) sortedPods() []*corev1.Pod { return listSorted[*corev1.Pod](c.objects) }

// workloadSpec returns the spec of the workload. It is empty if the spec cannot be read, since each round fails
// then.
func (c *cluster) workloadSpec() rollout.Spec {
	if c.asker != c.workload {
		c.wanted, _ = c.kind.ReadSpec(c.workload)
		c.asker = c.workload
	}
	return c.wanted
}

// countPods counts the pods, once for as long as nothing changes.
func (c *cluster) countPods() invariant.Observation {
	if now := c.now(); c.sight == nil || !c.seenAt.Equal(now) {
		sight := c.witness.CountPods(c.workload, listUnsorted[*corev1.Pod](c.objects), listUnsorted[*appsv1.ControllerRevision](c.objects), now)
		c.sight, c.seenAt = &sight, now
	}
	return *c.sight
}
