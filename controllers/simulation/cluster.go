// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cloneset"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/podunavailablebudget"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// cluster is an API server in memory with one workload, and what the controller's
// cache shows of it, which never lags behind.
type cluster struct {
	server client.WithWatch
	now    func() time.Time
	prefix string // of the UIDs that are given out
	uids   int

	kind      kinds.Workload
	set       *kruise.CloneSet
	pods      map[string]*corev1.Pod
	revisions map[string]*appsv1.ControllerRevision
	nodes     []*corev1.Node

	watchers []watcher // of pods
	queue    queue
	// admits is the webhook that is called before a write to a pod; nil for none.
	admits *admitter
	// refused is called after each write to a pod that was refused.
	refused func(Refusal)
	// asked is called for each write of the controller to a pod. now is nil for a
	// delete, was for a create.
	asked func(before cloneset.Sight, was, now *corev1.Pod)

	witness *cloneset.Witness
	// sight is what there was at a time; nil when there may be something else since.
	sight  *cloneset.Sight
	seenAt time.Time
}

// watcher handles events of pods, and adds to a queue.
type watcher struct {
	handler.EventHandler
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// queue notes that there is something to do. No worker takes from it.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	dirty bool
}

func (q *queue) Add(reconcile.Request) { q.dirty = true }

// indexer adds indexes to a server that is not built yet.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(o, field, extract)
	return nil
}

func newCluster(ctx context.Context, f Fleet, now func() time.Time) (*cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, kruise.AddToScheme, policy.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making a scheme: %w", err)
		}
	}
	kind, ok := kinds.Of(f.Set)
	if !ok {
		return nil, fmt.Errorf("no controller acts on a %T", f.Set)
	}
	c := &cluster{
		now: now, kind: kind, set: f.Set.DeepCopy(), prefix: fmt.Sprint(now().Unix(), "-"), nodes: f.Nodes,
		pods: map[string]*corev1.Pod{}, revisions: map[string]*appsv1.ControllerRevision{}, witness: cloneset.NewWitness(),
	}
	// No client of the simulation uses server-side apply. Tracking field managers
	// would take longer than all the rest of a write.
	store := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(store).WithStatusSubresource(&corev1.Pod{}, kind.New(), &policy.PodUnavailableBudget{})
	if err := rollout.Index(ctx, indexer{b}); err != nil {
		return nil, err
	}
	if err := podunavailablebudget.Index(ctx, indexer{b}); err != nil {
		return nil, err
	}
	c.server = b.Build()
	objects := []client.Object{c.set}
	for _, p := range f.Pods {
		if p.DeletionTimestamp == nil { // the others are as good as gone
			p = p.DeepCopy()
			c.pods[p.Name] = p
			objects = append(objects, p)
		}
	}
	for _, r := range f.Revisions {
		r = r.DeepCopy()
		c.revisions[r.Name] = r
		objects = append(objects, r)
	}
	for _, claim := range f.Claims {
		objects = append(objects, claim.DeepCopy())
	}
	for _, budget := range f.Budgets {
		objects = append(objects, budget.DeepCopy())
	}
	for _, o := range f.Others {
		objects = append(objects, o.DeepCopyObject().(client.Object))
	}
	for _, o := range objects {
		if err := c.put(ctx, o); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// put writes an object as it is, with its status.
func (c *cluster) put(ctx context.Context, o client.Object) error {
	status := o.DeepCopyObject().(client.Object)
	o.SetResourceVersion("")
	if o.GetUID() == "" {
		o.SetUID(c.uid())
	}
	if err := c.server.Create(ctx, o); err != nil {
		return fmt.Errorf("putting %T %s into the fleet: %w", o, o.GetName(), err)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		o.Status = status.(*corev1.Pod).Status
		return c.server.Status().Update(ctx, o)
	case *kruise.CloneSet:
		o.Status = status.(*kruise.CloneSet).Status
		return c.server.Status().Update(ctx, o)
	case *policy.PodUnavailableBudget:
		o.Status = status.(*policy.PodUnavailableBudget).Status
		return c.server.Status().Update(ctx, o)
	}
	return nil
}

func (c *cluster) uid() types.UID {
	c.uids++
	return types.UID(fmt.Sprintf("%s%06d", c.prefix, c.uids))
}

// all are the pods by name.
func (c *cluster) all() []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(c.pods))
	for _, name := range slices.Sorted(maps.Keys(c.pods)) {
		out = append(out, c.pods[name])
	}
	return out
}

// look counts what there is now, once for as long as that is the same.
func (c *cluster) look() cloneset.Sight {
	if now := c.now(); c.sight == nil || !c.seenAt.Equal(now) {
		sight := c.witness.Look(c.set, slices.Collect(maps.Values(c.pods)), slices.Collect(maps.Values(c.revisions)), now)
		c.sight, c.seenAt = &sight, now
	}
	return *c.sight
}

// show lets the cache show a pod as it is now, nil for its end.
func (c *cluster) show(ctx context.Context, name string, now *corev1.Pod) {
	was := c.pods[name]
	c.sight = nil
	if now == nil {
		delete(c.pods, name)
	} else {
		c.pods[name] = now
	}
	for _, w := range c.watchers {
		switch {
		case now == nil:
			w.Delete(ctx, event.DeleteEvent{Object: was}, w.queue)
		case was == nil:
			w.Create(ctx, event.CreateEvent{Object: now}, w.queue)
		default:
			w.Update(ctx, event.UpdateEvent{ObjectOld: was, ObjectNew: now}, w.queue)
		}
	}
}

// client is the API server for the controller.
func (c *cluster) client() client.Client {
	return interceptor.NewClient(c.server, interceptor.Funcs{
		List: c.list,
		Create: func(ctx context.Context, server client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(c.uid())
			o.SetCreationTimestamp(metav1.NewTime(c.now()))
			if pod, ok := o.(*corev1.Pod); ok && c.admits != nil {
				if err := c.admits.creates(ctx, pod); err != nil {
					return err
				}
			}
			return c.write(ctx, o, func() error { return server.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, server client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			var d client.PatchOptions
			d.ApplyOptions(opts)
			if err := c.asks(ctx, "", o, p, d.DryRun); err != nil {
				return err
			}
			write := func() error { return server.Patch(ctx, o, p, opts...) }
			if len(d.DryRun) > 0 {
				return write()
			}
			return c.write(ctx, o, write)
		},
		SubResourcePatch: func(ctx context.Context, server client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			var d client.SubResourcePatchOptions
			d.ApplyOptions(opts)
			if err := c.asks(ctx, sub, o, p, d.DryRun); err != nil {
				return err
			}
			write := func() error { return server.SubResource(sub).Patch(ctx, o, p, opts...) }
			if len(d.DryRun) > 0 {
				return write()
			}
			return c.write(ctx, o, write)
		},
		Delete: c.delete,
	})
}

// asks asks whether a pod may be patched.
func (c *cluster) asks(ctx context.Context, sub string, o client.Object, p client.Patch, dryRun []string) error {
	was := c.pods[o.GetName()]
	if _, ok := o.(*corev1.Pod); !ok || was == nil || c.admits == nil || !c.admits.asked(admissionv1.Update, sub) {
		return nil
	}
	now, err := patched(was, o, p)
	if err != nil {
		return err
	}
	return c.admitted(c.admits.ask(ctx, sub, was, now, dryRun...))
}

// admitted tells of a write that was refused.
func (c *cluster) admitted(r *Refusal, err error) error {
	if r != nil {
		c.refused(*r)
	}
	return err
}

// list gives the pods of the cache, as they stand in it.
func (c *cluster) list(ctx context.Context, server client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return server.List(ctx, list, opts...)
	}
	for _, p := range c.all() {
		if metav1.IsControlledBy(p, c.set) {
			pods.Items = append(pods.Items, *p)
		}
	}
	return nil
}

// write does a write of the controller, shows it and has it judged.
func (c *cluster) write(ctx context.Context, o client.Object, do func() error) error {
	before := c.look()
	if err := do(); err != nil {
		return err
	}
	switch o := o.DeepCopyObject().(type) {
	case *corev1.Pod:
		was := c.pods[o.Name]
		c.show(ctx, o.Name, o)
		c.asked(before, was, o)
	case *appsv1.ControllerRevision:
		c.revisions[o.Name], c.sight = o, nil
	case *kruise.CloneSet:
		c.set, c.sight = o, nil
	}
	return nil
}

// delete removes an object at once: it clears the finalizers, whose owners do not run here.
func (c *cluster) delete(ctx context.Context, server client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	found := o.DeepCopyObject().(client.Object)
	if err := server.Get(ctx, client.ObjectKeyFromObject(o), found); err != nil {
		return err
	}
	var d client.DeleteOptions
	d.ApplyOptions(opts)
	if p := d.Preconditions; p != nil && p.UID != nil && *p.UID != found.GetUID() {
		return apierrors.NewConflict(corev1.Resource("objects"), o.GetName(), fmt.Errorf("it has another UID, %s", found.GetUID()))
	}
	if pod, ok := found.(*corev1.Pod); ok && c.admits != nil {
		if err := c.admitted(c.admits.ask(ctx, "", pod, nil)); err != nil {
			return err
		}
	}
	before := c.look()
	if len(found.GetFinalizers()) > 0 {
		version := found.GetResourceVersion()
		found.SetFinalizers(nil)
		if err := server.Update(ctx, found); err != nil {
			return err
		}
		if p := d.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion == version {
			p.ResourceVersion = nil // it was the one asked for
		}
	}
	if err := server.Delete(ctx, found, &d); err != nil {
		return err
	}
	switch found.(type) {
	case *corev1.Pod:
		was := c.pods[found.GetName()]
		c.show(ctx, found.GetName(), nil)
		c.asked(before, was, nil)
	case *appsv1.ControllerRevision:
		delete(c.revisions, found.GetName())
		c.sight = nil
	}
	return nil
}

// update writes what others than the controller change of a pod.
func (c *cluster) update(ctx context.Context, was, now *corev1.Pod) error {
	if !equality.Semantic.DeepEqual(was.ObjectMeta, now.ObjectMeta) || !equality.Semantic.DeepEqual(was.Spec, now.Spec) {
		status := now.Status.DeepCopy()
		if err := c.server.Update(ctx, now); err != nil {
			return fmt.Errorf("updating pod %s: %w", now.Name, err)
		}
		now.Status = *status
	}
	if err := c.server.Status().Update(ctx, now); err != nil {
		return fmt.Errorf("updating the status of pod %s: %w", now.Name, err)
	}
	c.show(ctx, was.Name, now)
	return nil
}
