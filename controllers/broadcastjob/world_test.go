// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is a cluster in memory with nodes a, b and c and the job ops/upgrade.
type world struct {
	*testing.T
	api    client.WithWatch
	engine *engine.Engine
	events *record.FakeRecorder
	r      *Reconciler
	now    time.Time
	key    client.ObjectKey
	// writes counts what was written, also by pods at once; refuse fails one.
	writes atomic.Int64
	refuse func(n int, verb string, o client.Object) error
}

func newWorld(t *testing.T, edit func(*kruise.BroadcastJob), rules ...string) *world {
	t.Helper()
	return worldOf(t, newEngine(t), edit, rules...)
}

func newEngine(t *testing.T) *engine.Engine {
	t.Helper()
	return rules.Engine(t, "")
}

// worldOf is a world whose policies another one may have too.
func worldOf(t *testing.T, e *engine.Engine, edit func(*kruise.BroadcastJob), rules ...string) *world {
	t.Helper()
	w := &world{T: t, engine: e, events: record.NewFakeRecorder(10_000), now: time.Unix(1_700_000_000, 0), key: client.ObjectKey{Namespace: "ops", Name: "upgrade"}}
	if len(rules) > 0 {
		w.rule(rules...)
	}
	job := &kruise.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "upgrade", UID: "j1", CreationTimestamp: metav1.NewTime(w.now)}}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}
	job.Spec.CompletionPolicy.Type = kruise.AlwaysCompletionPolicyType
	if edit != nil {
		edit(job)
	}
	w.api = fakeclient.NewClientBuilder(apiserver.Scheme(t)).WithObjects(job).
		WithStatusSubresource(&kruise.BroadcastJob{}, &corev1.Pod{}, &corev1.Node{}).
		WithIndex(&corev1.Pod{}, rollout.OwnerIndex, rollout.OwnerUID).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if o.GetUID() == "" {
					o.SetUID(uuid.NewUUID())
				}
				if created := o.GetCreationTimestamp(); created.IsZero() {
					o.SetCreationTimestamp(metav1.NewTime(w.now))
				}
				return w.try("create", o, func() error { return c.Create(ctx, o, opts...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				return w.try("delete", o, func() error { return c.Delete(ctx, o, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				return w.try("patch", o, func() error { return c.Patch(ctx, o, p, opts...) })
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				return w.try("status", o, func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
			},
		}).Build()
	for _, name := range []string{"a", "b", "c"} {
		w.node(name, nil)
	}
	w.restart()
	return w
}

// try does a write, or fails it before or after, as refuse has it.
func (w *world) try(verb string, o client.Object, do func() error) error {
	if w.refuse == nil {
		return do()
	}
	n := int(w.writes.Add(1))
	if err := w.refuse(n, verb, o); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return w.refuse(-n, verb, o)
}

// restart is a new process with nothing in memory.
func (w *world) restart(opts ...Option) {
	w.r = New(reconcile.Deps{Client: w.api, Live: w.api, Events: w.events, Engine: w.engine, Now: func() time.Time { return w.now }}, opts...)
}

func (w *world) rule(rules ...string) {
	w.Helper()
	var set bundle.Set
	for i, rule := range rules {
		b, err := bundle.FromFiles(fmt.Sprint("rules-", i), map[string]string{"x.rego": fmt.Sprintf("package extend.placement.x%d\n\n%s", i, rule)})
		if err != nil {
			w.Fatal(err)
		}
		set = append(set, b)
	}
	if err := w.engine.ActivateBundles(w.Context(), set); err != nil {
		w.Fatal(err)
	}
}

// override replaces the decision.
func (w *world) override(rule string) {
	w.Helper()
	b, err := bundle.FromFiles("override", map[string]string{"x.rego": "package override.placement\n\n" + rule})
	if err != nil {
		w.Fatal(err)
	}
	if err := w.engine.ActivateBundles(w.Context(), bundle.Set{b}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) node(name string, edit func(*corev1.Node)) {
	w.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("10")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	err := w.api.Get(w.Context(), client.ObjectKeyFromObject(n), n)
	if edit != nil {
		edit(n)
	}
	if err == nil {
		err = w.api.Update(w.Context(), n)
	} else {
		err = w.api.Create(w.Context(), n)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// round reconciles until nothing is to be done at once, and says when to look again.
func (w *world) round() time.Duration {
	w.Helper()
	var last time.Duration
	for range 4 {
		got, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: w.key})
		if err != nil {
			w.Fatal(err)
		}
		last = got.RequeueAfter
	}
	return last
}

func (w *world) get() *kruise.BroadcastJob {
	w.Helper()
	job := &kruise.BroadcastJob{}
	if err := w.api.Get(w.Context(), w.key, job); err != nil {
		w.Fatal(err)
	}
	return job
}

func (w *world) edit(edit func(*kruise.BroadcastJob)) {
	w.Helper()
	job := w.get()
	edit(job)
	if err := w.api.Update(w.Context(), job); err != nil {
		w.Fatal(err)
	}
}

func (w *world) pods() []corev1.Pod {
	w.Helper()
	list := &corev1.PodList{}
	if err := w.api.List(w.Context(), list, client.InNamespace("ops")); err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// on are the nodes of the pods, in order, as "a b"; a pod that terminates has a -.
func (w *world) on() string {
	w.Helper()
	var out []string
	for _, p := range w.pods() {
		name := nodefit.NodeOf(&p)
		if p.DeletionTimestamp != nil {
			name += "-"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// phase brings the pods of nodes to a phase.
func (w *world) phase(phase corev1.PodPhase, nodes ...string) {
	w.Helper()
	for _, p := range w.pods() {
		if slices.Contains(nodes, nodefit.NodeOf(&p)) {
			p.Status.Phase = phase
			if err := w.api.Status().Update(w.Context(), &p); err != nil {
				w.Fatal(err)
			}
		}
	}
}

// told are the events since the last call, one a line.
func (w *world) told() string {
	var out []string
	for len(w.events.Events) > 0 {
		out = append(out, <-w.events.Events)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// status checks the numbers and the phase of the job.
func (w *world) status(phase kruise.BroadcastJobPhase, desired, active, succeeded, failed int32) {
	w.Helper()
	s := w.get().Status
	if s.Phase != phase || s.Desired != desired || s.Active != active || s.Succeeded != succeeded || s.Failed != failed {
		w.Errorf("the status is %s, %d desired, %d active, %d succeeded, %d failed; want %s %d %d %d %d",
			s.Phase, s.Desired, s.Active, s.Succeeded, s.Failed, phase, desired, active, succeeded, failed)
	}
}

func (w *world) where(want string) {
	w.Helper()
	if got := w.on(); got != want {
		w.Errorf("there are pods on %q, want %q", got, want)
	}
}
