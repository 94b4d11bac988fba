// SPDX-License-Identifier: Apache-2.0

package faultinjection

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// injector counts the calls of a controller, and has some of them fail.
type injector struct {
	store *store
	// choose is the fault of a call; empty for none.
	choose  func(Call, time.Time) Fault
	watches map[string]Changes

	mu     sync.Mutex
	calls  []Call
	failed int       // calls that failed by a fault
	at     time.Time // of the last of them
	late   bool      // an event follows
}

// listCalls returns the calls so far.
func (i *injector) listCalls() []Call {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls
}

func (i *injector) makeCall(verb string, o any, key types.NamespacedName, sub string, do func() error) error {
	c := Call{Verb: verb, Kind: i.kindOf(o), Subresource: sub, Key: key}
	if object, ok := o.(client.Object); ok && verb == "create" && key.Name == "" {
		c.GenerateName = object.GetGenerateName()
	}
	i.mu.Lock()
	c.Number = len(i.calls) + 1
	i.calls = append(i.calls, c)
	fault := Fault("")
	if i.choose != nil {
		fault = i.choose(c, i.store.now())
	}
	if fault != "" {
		i.failed++
		i.at = i.store.now()
		// What a cache does not show yet, and what another client has deleted, has an event.
		i.late = i.late || fault == LateRead || fault == NotFound && i.watches[c.Kind] != NoChanges
	}
	i.mu.Unlock()
	if fault == "" {
		return do()
	}
	object, ok := o.(client.Object)
	if !ok {
		return fault.carryOut(c, do)
	}
	local := object.DeepCopyObject() // an answer that is lost does not reach the caller
	err := fault.carryOut(c, do)
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(local).Elem())
	return err
}

func (i *injector) kindOf(o any) string {
	if name, ok := o.(kindName); ok {
		return string(name)
	}
	if object, ok := o.(runtime.Object); ok {
		if kind, err := apiutil.GVKForObject(object, i.store.Scheme()); err == nil {
			return kind.Kind
		}
	}
	return fmt.Sprintf("%T", o)
}

// named is what an apply configuration says of its object.
type named interface {
	GetName() *string
	GetNamespace() *string
	GetKind() *string
}

func (i *injector) applyConfiguration(o runtime.ApplyConfiguration, sub string, do func() error) error {
	kind, key := identifyApplied(o)
	return i.makeCall("apply", kindName(kind), key, sub, do)
}

// identifyApplied returns the kind and the name of what is applied.
func identifyApplied(o runtime.ApplyConfiguration) (kind string, key types.NamespacedName) {
	switch n := o.(type) {
	case client.Object: // made of an Unstructured
		return n.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(n)
	case named:
		return ptr.Deref(n.GetKind(), fmt.Sprintf("%T", o)), types.NamespacedName{Namespace: ptr.Deref(n.GetNamespace(), ""), Name: ptr.Deref(n.GetName(), "")}
	}
	return fmt.Sprintf("%T", o), key
}

// kindName is a kind that is known by its name alone.
type kindName string

// newClient makes the client of a controller.
func (i *injector) newClient() client.WithWatch {
	return interceptor.NewClient(i.store, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return i.makeCall("get", o, key, "", func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return i.makeCall("list", list, types.NamespacedName{}, "", func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return i.makeCall("create", o, client.ObjectKeyFromObject(o), "", func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return i.makeCall("update", o, client.ObjectKeyFromObject(o), "", func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return i.makeCall("patch", o, client.ObjectKeyFromObject(o), "", func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return i.applyConfiguration(o, "", func() error { return c.Apply(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return i.makeCall("delete", o, client.ObjectKeyFromObject(o), "", func() error { return c.Delete(ctx, o, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			return i.makeCall("deletecollection", o, types.NamespacedName{}, "", func() error { return c.DeleteAllOf(ctx, o, opts...) })
		},
		SubResourceGet: func(ctx context.Context, c client.Client, sub string, o, s client.Object, opts ...client.SubResourceGetOption) error {
			return i.makeCall("get", o, client.ObjectKeyFromObject(o), sub, func() error { return c.SubResource(sub).Get(ctx, o, s, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, s client.Object, opts ...client.SubResourceCreateOption) error {
			return i.makeCall("create", o, client.ObjectKeyFromObject(o), sub, func() error { return c.SubResource(sub).Create(ctx, o, s, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return i.makeCall("update", o, client.ObjectKeyFromObject(o), sub, func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return i.makeCall("patch", o, client.ObjectKeyFromObject(o), sub, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return i.applyConfiguration(o, sub, func() error { return c.SubResource(sub).Apply(ctx, o, opts...) })
		},
	})
}
