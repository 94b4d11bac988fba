// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/test/apiserver"
)

func pod(name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid of " + name)}}
	for _, f := range edit {
		f(p)
	}
	return p
}

func deleted(p *corev1.Pod) {
	p.Finalizers, p.DeletionTimestamp = []string{"a/b"}, &metav1.Time{Time: time.Unix(1_700_000_000, 0)}
}

func TestReconcile(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	conflict := fmt.Errorf("writing: %w", apierrors.NewConflict(pods, "a", errors.New("newer")))
	failure := errors.New("broken")
	for name, tc := range map[string]struct {
		have      *corev1.Pod
		unread    error
		after     time.Duration
		err       error
		finalizes bool
		want      string
		again     time.Duration
		failure   string
	}{
		"a step":          {have: pod("a"), want: "reconcile"},
		"looked at again": {have: pod("a"), after: time.Minute, want: "reconcile", again: time.Minute},
		"a conflict":      {have: pod("a"), after: time.Minute, err: conflict, want: "reconcile", again: requeue.Soon},
		"a conflict, and another failure": {
			have: pod("a"), after: time.Minute, err: errors.Join(conflict, failure), want: "reconcile", again: time.Minute,
			failure: "writing: Operation cannot be fulfilled on pods \"a\": newer\nbroken",
		},
		"gone meanwhile":                {have: pod("a"), after: time.Minute, err: fmt.Errorf("writing: %w", apierrors.NewNotFound(pods, "a")), want: "reconcile"},
		"gone meanwhile, at two writes": {have: pod("a"), err: errors.Join(apierrors.NewNotFound(pods, "a"), fmt.Errorf("b: %w", apierrors.NewNotFound(pods, "a"))), want: "reconcile"},
		"gone, and another failure": {
			have: pod("a"), err: errors.Join(apierrors.NewNotFound(pods, "a"), failure), want: "reconcile", failure: "pods \"a\" not found\nbroken",
		},
		"another object is gone": {have: pod("a"), after: time.Minute, err: apierrors.NewNotFound(pods, "b"), want: "reconcile", again: time.Minute, failure: `pods "b" not found`},
		"an object of another kind is gone": {
			have: pod("a"), err: apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "a"), want: "reconcile", failure: `secrets "a" not found`,
		},
		"a failure":                     {have: pod("a"), after: time.Minute, err: failure, want: "reconcile", again: time.Minute, failure: "broken"},
		"gone":                          {want: "forget shop/a"},
		"unreadable":                    {unread: failure, failure: "reading Pod shop/a: broken"},
		"deleted":                       {have: pod("a", deleted)},
		"deleted, with work to do":      {have: pod("a", deleted), finalizes: true, after: time.Second, want: "finalize", again: time.Second},
		"deleted, with a lost race":     {have: pod("a", deleted), finalizes: true, err: conflict, want: "finalize", again: requeue.Soon},
		"deleted, with work that fails": {have: pod("a", deleted), finalizes: true, err: failure, want: "finalize", failure: "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if tc.unread != nil {
						return tc.unread
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			if tc.have != nil {
				b = b.WithObjects(tc.have)
			}
			var did []string
			does := func(what string) func(context.Context, *corev1.Pod) (time.Duration, error) {
				return func(_ context.Context, p *corev1.Pod) (time.Duration, error) {
					if p.Name != "a" {
						t.Errorf("the step is of pod %q", p.Name)
					}
					did = append(did, what)
					return tc.after, tc.err
				}
			}
			funcs := reconcile.ObjectFuncs[*corev1.Pod]{
				Reconcile: does("reconcile"),
				Forget:    func(key types.NamespacedName) { did = append(did, "forget "+key.String()) },
			}
			if tc.finalizes {
				funcs.Finalize = does("finalize")
			}
			r := reconcile.NewObjectReconciler(reconcile.Deps{Client: b.Build()}, funcs)
			res, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "a"}})
			if got := strings.Join(did, ", "); got != tc.want || res.RequeueAfter != tc.again {
				t.Errorf("did %q and looks again after %s; want %q, %s", got, res.RequeueAfter, tc.want, tc.again)
			}
			if (err == nil) != (tc.failure == "") || err != nil && err.Error() != tc.failure {
				t.Errorf("the error is %v, want %q", err, tc.failure)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	broken := false
	c := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(pod("a"), pod("b"), pod("c")).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if broken {
				return errors.New("broken")
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	names := func(want func(*corev1.Pod) bool) (out []string) {
		found, err := reconcile.ListRequests(t.Context(), c, &corev1.PodList{}, want)
		for _, req := range found {
			out = append(out, req.String())
		}
		if (err != nil) != broken {
			t.Errorf("the error is %v, and the list is broken: %t", err, broken)
		}
		return out
	}
	if got := names(reconcile.AllObjects[*corev1.Pod]); !slices.Equal(got, []string{"shop/a", "shop/b", "shop/c"}) {
		t.Errorf("of all: %v", got)
	}
	if got := names(func(p *corev1.Pod) bool { return p.Name == "b" }); !slices.Equal(got, []string{"shop/b"}) {
		t.Errorf("of one: %v", got)
	}
	if broken = true; len(names(reconcile.AllObjects[*corev1.Pod])) > 0 {
		t.Error("a list that cannot be read has requests")
	}
}

func TestMemory(t *testing.T) {
	var dropped []types.UID
	m := reconcile.NewMemory(func() int { return 7 }, func(uid types.UID) { dropped = append(dropped, uid) })
	a, b := pod("a"), pod("b")
	if *m.GetOrCreate(a) != 7 {
		t.Fatal("it does not begin as it should")
	}
	*m.GetOrCreate(a) = 8
	if *m.GetOrCreate(a) != 8 || *m.GetOrCreate(b) != 7 {
		t.Fatalf("remembered are %d and %d", *m.GetOrCreate(a), *m.GetOrCreate(b))
	}
	anew := pod("a", func(p *corev1.Pod) { p.UID = "another" })
	if *m.GetOrCreate(anew) != 7 || !slices.Equal(dropped, []types.UID{a.UID}) {
		t.Fatalf("of the same name: %d, dropped %v", *m.GetOrCreate(anew), dropped)
	}
	m.ForgetObject(client.ObjectKeyFromObject(b))
	m.ForgetObject(client.ObjectKeyFromObject(b))
	if !slices.Equal(dropped, []types.UID{a.UID, b.UID}) {
		t.Errorf("dropped are %v", dropped)
	}
}

func TestRecorded(t *testing.T) {
	events := record.NewFakeRecorder(10)
	var r reconcile.RecordedEvents
	for _, message := range []string{"one", "one", "two", "one"} {
		r.RecordOnce(events, pod("a"), corev1.EventTypeWarning, "Held", message)
	}
	r.RecordOnce(events, pod("a"), corev1.EventTypeWarning, "Denied", "one")
	r.ForgetReason("Held")
	r.RecordOnce(events, pod("a"), corev1.EventTypeWarning, "Held", "one")
	close(events.Events)
	var got []string
	for e := range events.Events {
		got = append(got, e)
	}
	if want := []string{"Warning Held one", "Warning Held two", "Warning Held one", "Warning Denied one", "Warning Held one"}; !slices.Equal(got, want) {
		t.Errorf("recorded are %q, want %q", got, want)
	}
}
