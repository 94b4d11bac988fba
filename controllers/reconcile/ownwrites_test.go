// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// A controller compares the status that it computes with the last one that it wrote, whatever its cache shows and
// whether there was an answer.
func TestAControllerComparesWithItsOwnStatus(t *testing.T) {
	const was, between = corev1.PodPending, corev1.PodRunning
	writes := map[string]func(context.Context, client.Client, *corev1.Pod, *corev1.Pod) error{
		"an update": func(ctx context.Context, c client.Client, _, next *corev1.Pod) error {
			return c.Status().Update(ctx, next)
		},
		"a patch": func(ctx context.Context, c client.Client, was, next *corev1.Pod) error {
			return c.Status().Patch(ctx, next, client.MergeFrom(was))
		},
	}
	for name, tc := range map[string]struct {
		lost    bool          // the answer to the write
		later   time.Duration // that the cache is late
		current bool          // whether the cache shows the write in the next round
	}{
		"the cache shows it":                              {current: true},
		"the cache is late":                               {},
		"the cache is late for minutes":                   {later: 5 * time.Minute},
		"the answer was lost":                             {lost: true, current: true},
		"the answer was lost, and the cache is late":      {lost: true},
		"the answer was lost, and the cache is very late": {lost: true, later: 5 * time.Minute},
	} {
		for verb, write := range writes {
			t.Run(verb+", "+name, func(t *testing.T) {
				w := newLateCache(t)
				var observed corev1.PodPhase
				r := reconcile.NewObjectReconciler(w.deps, reconcile.ObjectFuncs[*corev1.Pod]{
					Reconcile: func(ctx context.Context, p *corev1.Pod) (time.Duration, error) {
						if p.Status.Phase == observed {
							return 0, nil
						}
						next := p.DeepCopy()
						next.Status.Phase = observed
						return 0, write(ctx, w.deps.Client, p, next)
					},
				})
				run := func(phase corev1.PodPhase) (reconcile.Result, error) {
					observed = phase
					return r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod("a"))})
				}
				if _, err := run(was); err != nil {
					t.Fatal(err)
				}
				w.late, w.lost = w.stored(t), tc.lost
				if _, err := run(between); (err != nil) != tc.lost || w.stored(t).Status.Phase != between {
					t.Fatalf("the phase is %s: %v", w.stored(t).Status.Phase, err)
				}
				w.lost = false
				w.now = w.now.Add(tc.later)
				if tc.current {
					w.late = nil
				}
				result, err := run(was)
				if err != nil {
					t.Fatal(err)
				}
				if w.stored(t).Status.Phase != was { // an update of what the cache shows is a race that is lost
					if result.RequeueAfter == 0 {
						t.Fatalf("the phase is %s, and nothing follows", w.stored(t).Status.Phase)
					}
					w.late = nil
					if _, err := run(was); err != nil || w.stored(t).Status.Phase != was {
						t.Errorf("the phase is %s: %v", w.stored(t).Status.Phase, err)
					}
				}
			})
		}
	}
}

// A cluster that was restored from a backup has older versions. What was written before counts no more.
func TestARestoredStatusCounts(t *testing.T) {
	w := newLateCache(t)
	restored := w.stored(t)
	read := func() *corev1.Pod {
		t.Helper()
		p := &corev1.Pod{}
		if err := w.deps.ReadObject(t.Context(), client.ObjectKeyFromObject(pod("a")), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := read()
	p.Status.Phase = corev1.PodRunning
	if err := w.deps.Client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.late, w.restored = restored, restored
	if got := read().Status.Phase; got != corev1.PodRunning {
		t.Errorf("the phase is %q while the cache is late", got)
	}
	w.now = w.now.Add(2 * time.Minute)
	for range 2 {
		if got := read().Status.Phase; got != restored.Status.Phase {
			t.Errorf("the phase is %q after the restore", got)
		}
	}
}

// What the cache has, and the API server's answer leaves out, is not in the status.
func TestAStatusThatIsReadAgainHasNothingOfTheCache(t *testing.T) {
	w := newLateCache(t)
	read := func(deps reconcile.Deps) *corev1.Pod {
		t.Helper()
		p := &corev1.Pod{}
		if err := deps.ReadObject(t.Context(), client.ObjectKeyFromObject(pod("a")), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	deps := reconcile.Deps{Client: w.deps.Client, Now: w.deps.Now, Live: interceptor.NewClient(w.api.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			stored := &corev1.Pod{}
			if err := c.Get(ctx, key, stored); err != nil {
				return err
			}
			text, err := json.Marshal(stored)
			if err != nil {
				return err
			}
			return json.Unmarshal(text, o) // as clients of API servers decode
		},
	})}.WithDefaults()
	p := read(deps)
	p.Status.Reason = "Late"
	if err := deps.Client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	late := w.stored(t)
	read(deps) // the cache shows it
	p.Status.Reason = ""
	if err := deps.Client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.late = late
	w.now = w.now.Add(2 * time.Minute)
	if got := read(deps).Status.Reason; got != "" {
		t.Errorf("the reason is %q", got)
	}
}

// lateCache is an API server with a pod, and the Deps of a controller whose cache may be late.
type lateCache struct {
	api      client.Client
	deps     reconcile.Deps
	now      time.Time
	late     *corev1.Pod // what the cache shows, nil for what there is
	restored *corev1.Pod // what the API server has, nil for what there is
	lost     bool        // the answers to writes
}

func newLateCache(t *testing.T) *lateCache {
	t.Helper()
	w := &lateCache{now: time.Unix(1_700_000_000, 0)}
	api := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(pod("a")).WithStatusSubresource(&corev1.Pod{}).Build()
	w.api = api
	shows := func(of **corev1.Pod) func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if p, ok := o.(*corev1.Pod); ok && *of != nil {
				(*of).DeepCopyInto(p)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		}
	}
	answer := func(err error) error {
		if err == nil && w.lost {
			return context.DeadlineExceeded
		}
		return err
	}
	w.deps = reconcile.Deps{
		Client: interceptor.NewClient(api, interceptor.Funcs{
			Get: shows(&w.late),
			SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				return answer(c.SubResource(name).Update(ctx, o, opts...))
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				return answer(c.SubResource(name).Patch(ctx, o, patch, opts...))
			},
		}),
		Live: interceptor.NewClient(api, interceptor.Funcs{Get: shows(&w.restored)}),
		Now:  func() time.Time { return w.now },
	}.WithDefaults()
	return w
}

func (w *lateCache) stored(t *testing.T) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(pod("a")), p); err != nil {
		t.Fatal(err)
	}
	return p
}
