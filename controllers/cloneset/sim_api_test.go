// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// fault is what goes wrong with one write of the controller.
type fault string

const (
	none     fault = ""
	race     fault = "another client wrote first"
	lostAns  fault = "it is done, but the answer is lost"
	crash    fault = "the controller ends before it"
	crashed  fault = "the controller ends after it"
	refusing fault = "the API server refuses it"
)

var errEnded = errors.New("the controller has ended")

// change is an event on its way from the API server to the cache. object is nil
// for the end of before.
type change struct {
	key            string
	object, before client.Object
}

func simKey(o client.Object) string {
	return fmt.Sprintf("%s/%s", reflect.TypeOf(o).Elem().Name(), o.GetName())
}

// commit notes that an object was written, for the cache to show it later.
func (s *sim) commit(o client.Object) {
	now := o.DeepCopyObject().(client.Object)
	key := simKey(o)
	err := s.truth.Get(context.Background(), client.ObjectKeyFromObject(o), now)
	if err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatal(err)
	}
	if err != nil {
		now = nil
	}
	s.pending = append(s.pending, change{key: key, object: now, before: s.last[key]})
	if now == nil {
		delete(s.last, key)
	} else {
		s.last[key] = now
	}
}

// show lets the cache take the first event of a kind that is on its way, and says
// whether there was one. Kinds do not wait for one another.
func (s *sim) show(kind string) bool {
	i := slices.IndexFunc(s.pending, func(c change) bool { return strings.HasPrefix(c.key, kind) })
	if i < 0 {
		return false
	}
	c := s.pending[i]
	s.pending = slices.Delete(s.pending, i, i+1)
	old := s.cache[c.key]
	if c.object == nil {
		delete(s.cache, c.key)
	} else {
		s.cache[c.key] = c.object.DeepCopyObject().(client.Object)
	}
	s.pristine[c.key] = c.object
	s.tell(old, c.object)
	return true
}

// tell calls the handlers that the controller would have for an event.
func (s *sim) tell(old, now client.Object) {
	pods, ctx := s.r.PodEvents(), context.Background()
	some := now
	if now == nil {
		some = old
	}
	switch some.(type) {
	case *corev1.Pod:
		switch {
		case old == nil:
			pods.Create(ctx, event.CreateEvent{Object: now}, s.queue)
		case now == nil:
			pods.Delete(ctx, event.DeleteEvent{Object: old}, s.queue)
		default:
			pods.Update(ctx, event.UpdateEvent{ObjectOld: old, ObjectNew: now}, s.queue)
		}
	case *kruise.CloneSet:
		if old == nil || now == nil || rollout.UserChanges().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: now}) {
			s.queue.dirty = true
		}
	case *corev1.PersistentVolumeClaim:
		s.queue.dirty = true
	}
}

// showAll lets the cache catch up with a kind; "" for all.
func (s *sim) showAll(kind string) {
	for s.show(kind) {
	}
}

// api is the API server as the controller sees it: it reads from a cache that
// lags behind, and its writes may go wrong.
type api struct {
	client.Client
	s *sim
}

func (a api) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetName(key.Name)
	got, ok := a.s.cache[simKey(o)]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: simKey(o)}, key.Name)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(got.DeepCopyObject()).Elem())
	return nil
}

// List gives the very objects of the cache for pods, as without deep copies.
func (a api) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	var keys []string
	for k := range a.s.cache {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	owned := func(o client.Object) bool { return slices.Equal(rollout.OwnerUID(o), []string{string(a.s.uid)}) }
	for _, k := range keys {
		switch o := a.s.cache[k].(type) {
		case *corev1.Pod:
			if l, ok := list.(*corev1.PodList); ok && owned(o) {
				l.Items = append(l.Items, *o)
			}
		case *corev1.PersistentVolumeClaim:
			if l, ok := list.(*corev1.PersistentVolumeClaimList); ok && owned(o) {
				l.Items = append(l.Items, *o.DeepCopy())
			}
		case *appsv1.ControllerRevision:
			if l, ok := list.(*appsv1.ControllerRevisionList); ok && owned(o) {
				l.Items = append(l.Items, *o.DeepCopy())
			}
		}
	}
	return nil
}

// write does one write of the controller, or what goes wrong with it.
func (a api) write(what string, o client.Object, do func() error) error {
	s := a.s
	if s.ended {
		return errEnded
	}
	if s.deny != nil {
		if err := s.deny(o, what); err != nil {
			s.history = append(s.history, what+": "+err.Error())
			return err
		}
	}
	f := s.fault()
	what += " " + simKey(o)
	if f != none {
		what += ": " + string(f)
	}
	s.history = append(s.history, what)
	switch f {
	case race:
		return apierrors.NewConflict(schema.GroupResource{Resource: "x"}, o.GetName(), errors.New(string(f)))
	case refusing:
		return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, o.GetName(), errors.New(string(f)))
	case crash:
		s.ended = true
		return errEnded
	}
	before := s.look()
	local := o.DeepCopyObject().(client.Object)
	err := do()
	if err == nil {
		s.commit(o)
		if _, ok := o.(*corev1.Pod); ok { // what else is written may change what counts as updated
			s.judge(what, before)
		}
	}
	switch f {
	case lostAns:
		reflect.ValueOf(o).Elem().Set(reflect.ValueOf(local).Elem())
		return apierrors.NewTimeoutError(string(f), 1)
	case crashed:
		s.ended = true
		return errEnded
	}
	return err
}

func (a api) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return a.write("create", o, func() error {
		o.SetCreationTimestamp(metav1.NewTime(a.s.now))
		o.SetUID(a.s.newUID())
		switch o.(type) { // both stay until their finalizers are removed, as in a cluster
		case *corev1.Pod:
			o.SetFinalizers(append(o.GetFinalizers(), simKubelet))
		case *corev1.PersistentVolumeClaim:
			o.SetFinalizers(append(o.GetFinalizers(), simProtection))
		}
		return a.Client.Create(ctx, o, opts...)
	})
}

func (a api) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return a.write("patch", o, func() error { return a.Client.Patch(ctx, o, p, opts...) })
}

func (a api) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return a.write("delete", o, func() error {
		found := o.DeepCopyObject().(client.Object)
		if err := a.Client.Get(ctx, client.ObjectKeyFromObject(o), found); err != nil {
			return err
		}
		d := client.DeleteOptions{}
		d.ApplyOptions(opts)
		if d.Preconditions != nil && d.Preconditions.UID != nil && *d.Preconditions.UID != found.GetUID() {
			return apierrors.NewConflict(schema.GroupResource{Resource: "x"}, o.GetName(), errors.New("another UID"))
		}
		if d.Preconditions != nil && d.Preconditions.ResourceVersion != nil && *d.Preconditions.ResourceVersion != found.GetResourceVersion() {
			return apierrors.NewConflict(schema.GroupResource{Resource: "x"}, o.GetName(), errors.New("another version"))
		}
		if err := a.Client.Delete(ctx, found); err != nil {
			return err
		}
		if p, ok := found.(*corev1.Pod); ok && p.Spec.NodeName == "" { // no kubelet has to stop it
			a.s.letGo(found, simKubelet)
		}
		return nil
	})
}

func (a api) Status() client.SubResourceWriter { return a.SubResource("status") }

func (a api) SubResource(name string) client.SubResourceClient {
	return sub{a.Client.SubResource(name), a, name}
}

type sub struct {
	client.SubResourceClient
	a    api
	name string
}

func (u sub) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return u.a.write("patch "+u.name+" of", o, func() error { return u.SubResourceClient.Patch(ctx, o, p, opts...) })
}

// live reads past the cache.
type live struct{ api }

func (l live) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return l.Client.Get(ctx, key, o, opts...)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// simQueue notes that there is something to do.
type simQueue struct {
	queue
	dirty bool
}

// unchanged fails if the controller changed an object of the cache.
func (s *sim) unchanged() {
	for k, is := range s.cache {
		if want := s.pristine[k]; !reflect.DeepEqual(want, is) {
			s.t.Fatalf("%s was changed in the cache by its reader", k)
		}
	}
}

// letGo takes a finalizer off.
func (s *sim) letGo(o client.Object, finalizer string) {
	found := o.DeepCopyObject().(client.Object)
	if err := s.truth.Get(context.Background(), client.ObjectKeyFromObject(o), found); err != nil {
		return
	}
	found.SetFinalizers(slices.DeleteFunc(found.GetFinalizers(), func(f string) bool { return f == finalizer }))
	if err := s.truth.Update(context.Background(), found); err != nil && !strings.Contains(err.Error(), "not found") {
		s.t.Fatal(err)
	}
}

func simScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, kruise.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}
