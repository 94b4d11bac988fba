// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// objects are the objects of a namespace that the controller reads, by type and name.
type objects map[reflect.Type]map[string]client.Object

// getObject returns the object with the type and the name of another one, nil if there is none.
func (o objects) getObject(like client.Object) client.Object {
	return o[reflect.TypeOf(like)][like.GetName()]
}

// setObject replaces the object with a type and a name; nil removes it.
func (o objects) setObject(like, now client.Object) {
	of := o[reflect.TypeOf(like)]
	if now == nil {
		delete(of, like.GetName())
		return
	}
	of[like.GetName()] = now
}

// forEachObject calls a function for all objects, sorted by type and name.
func (o objects) forEachObject(do func(client.Object)) {
	types := slices.SortedFunc(maps.Keys(o), func(a, b reflect.Type) int { return strings.Compare(a.String(), b.String()) })
	for _, t := range types {
		for _, name := range slices.Sorted(maps.Keys(o[t])) {
			do(o[t][name])
		}
	}
}

// listSorted returns all objects of a type, by name.
func listSorted[T client.Object](o objects) []T {
	of := o[reflect.TypeFor[T]()]
	out := make([]T, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, of[name].(T))
	}
	return out
}

func listUnsorted[T client.Object](o objects) []T {
	of := o[reflect.TypeFor[T]()]
	out := make([]T, 0, len(of))
	for _, object := range of {
		out = append(out, object.(T))
	}
	return out
}

// change is an event on its way from the API server to the cache. now is nil for the deletion
// of an object.
type change struct{ like, now client.Object }

// commitWrite notes that an object was written or deleted, and sends the event to the cache. It keeps the
// object as it was written; in a slow cluster it reads it, since other clients may have changed it.
func (c *cluster) commitWrite(ctx context.Context, o client.Object, gone bool) error {
	now := o
	if c.slow {
		now = o.DeepCopyObject().(client.Object)
		err := c.server.Get(ctx, client.ObjectKeyFromObject(o), now)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading what was written: %w", err)
		}
		gone = err != nil
	}
	if gone {
		now = nil
	}
	was := c.objects.getObject(o)
	c.objects.setObject(o, now)
	c.sight = nil
	if now != nil && c.workload != nil && reflect.TypeOf(now) == reflect.TypeOf(c.workload) && now.GetName() == c.workload.GetName() {
		c.workload = now
	}
	if c.slow {
		c.pending = append(c.pending, change{o, now})
		return nil
	}
	c.dispatchEvent(ctx, was, now)
	return nil
}

// showNext makes the cache receive the first pending event of a type, nil for any, and
// reports whether there was one. Events of one type do not wait for those of others.
func (c *cluster) showNext(ctx context.Context, of client.Object) bool {
	i := slices.IndexFunc(c.pending, func(p change) bool { return of == nil || reflect.TypeOf(p.like) == reflect.TypeOf(of) })
	if i < 0 {
		return false
	}
	p := c.pending[i]
	c.pending = slices.Delete(c.pending, i, i+1)
	c.updateCache(ctx, p.like, p.now)
	return true
}

// updateCache makes the cache show an object as it was at a time, nil for its deletion.
func (c *cluster) updateCache(ctx context.Context, like, now client.Object) {
	was := c.cache.getObject(like)
	c.shown.setObject(like, now)
	if now != nil {
		now = now.DeepCopyObject().(client.Object)
	}
	c.cache.setObject(like, now)
	c.dispatchEvent(ctx, was, now)
}

// catchUp fills the cache of a controller that starts with all objects.
func (c *cluster) catchUp() {
	c.pending, c.cache, c.shown = nil, objects{}, objects{}
	for t := range c.objects {
		c.cache[t], c.shown[t] = map[string]client.Object{}, map[string]client.Object{}
	}
	c.objects.forEachObject(func(o client.Object) {
		c.shown.setObject(o, o)
		c.cache.setObject(o, o.DeepCopyObject().(client.Object))
	})
}

// dispatchEvent calls the handlers of an event.
func (c *cluster) dispatchEvent(ctx context.Context, was, now client.Object) {
	some := now
	if now == nil {
		some = was
	}
	if some == nil { // the cache never showed the object
		return
	}
	switch some.(type) {
	case *corev1.Pod:
		for _, w := range c.watchers {
			w.dispatchEvent(ctx, was, now)
		}
	case *corev1.Node:
		if c.nodesTo != nil {
			watcher{c.nodesTo, &c.queue}.dispatchEvent(ctx, was, now)
		}
	default:
		c.tellOf(some, was, now)
	}
}

func (w watcher) dispatchEvent(ctx context.Context, was, now client.Object) {
	switch {
	case now == nil:
		w.Delete(ctx, event.DeleteEvent{Object: was}, w.queue)
	case was == nil:
		w.Create(ctx, event.CreateEvent{Object: now}, w.queue)
	default:
		w.Update(ctx, event.UpdateEvent{ObjectOld: was, ObjectNew: now}, w.queue)
	}
}

// tellOf makes the controller reconcile after a change of an object other than a pod by another client. Only in a slow
// cluster are there such changes.
func (c *cluster) tellOf(some, was, now client.Object) {
	if !c.slow {
		return
	}
	of := reflect.TypeOf(some)
	if of == reflect.TypeOf(c.workload) {
		c.queue.dirty = c.queue.dirty || was == nil || now == nil || reconcile.UserChanges().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: now})
	}
	if slices.ContainsFunc(c.typ.Owned, func(o client.Object) bool { return reflect.TypeOf(o) == of }) {
		c.queue.dirty = true
	}
}

// getCached reads an object from the cache, if the cache has its type.
func (c *cluster) getCached(ctx context.Context, server client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	of, tracked := c.cache[reflect.TypeOf(into)]
	if !tracked {
		return server.Get(ctx, key, into, opts...)
	}
	found, ok := of[key.Name]
	if !ok || found.GetNamespace() != key.Namespace {
		return apierrors.NewNotFound(schema.GroupResource{Resource: reflect.TypeOf(into).Elem().Name()}, key.Name)
	}
	copyTo(into, found.DeepCopyObject())
	return nil
}

// listCached lists the objects in the cache, without copies if the options allow that.
func (c *cluster) listCached(ctx context.Context, server client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	of, tracked := c.lists[reflect.TypeOf(list)]
	if !tracked {
		return server.List(ctx, list, opts...)
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	found, err := c.fieldMatcher(of, o.FieldSelector)
	if err != nil {
		return err
	}
	bare := o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy
	pods, _ := list.(*corev1.PodList)
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	for _, name := range slices.Sorted(maps.Keys(c.cache[of])) {
		object := c.cache[of][name]
		if o.Namespace != "" && object.GetNamespace() != o.Namespace || o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		if !found(object) {
			continue
		}
		if !bare {
			object = object.DeepCopyObject().(client.Object)
		}
		if pods != nil {
			pods.Items = append(pods.Items, *object.(*corev1.Pod))
			continue
		}
		items.Set(reflect.Append(items, reflect.ValueOf(object).Elem()))
	}
	return nil
}

// fieldMatcher returns which objects a field selector matches, by means of the indexes.
func (c *cluster) fieldMatcher(of reflect.Type, by fields.Selector) (func(client.Object) bool, error) {
	if by == nil || by.Empty() {
		return func(client.Object) bool { return true }, nil
	}
	if owner, ok := by.RequiresExactMatch(rollout.OwnerIndex); ok && len(by.Requirements()) == 1 { // the usual one, without its slices
		return func(o client.Object) bool {
			ref := metav1.GetControllerOfNoCopy(o)
			return ref != nil && string(ref.UID) == owner || ref == nil && owner == rollout.Orphans
		}, nil
	}
	for _, r := range by.Requirements() {
		if c.indexes[index{of, r.Field}] == nil || r.Operator != selection.Equals && r.Operator != selection.DoubleEquals {
			return nil, fmt.Errorf("listing %s by %s: the cache has no such index", of, by)
		}
	}
	return func(o client.Object) bool {
		return !slices.ContainsFunc(by.Requirements(), func(r fields.Requirement) bool {
			return !slices.Contains(c.indexes[index{of, r.Field}](o), r.Value)
		})
	}, nil
}

func copyTo(into, from any) { reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from).Elem()) }
