// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is a namespace with a job for nodes of its own, which have its name as a label.
type world struct {
	*testing.T
	api    client.Client
	engine *engine.Engine
	r      *Reconciler
	events *record.FakeRecorder
	now    time.Time
	ns     string
}

// begin makes a world with so many nodes, two of a zone.
func begin(t *testing.T, api client.Client, ns string, nodes int, modules ...string) *world {
	t.Helper()
	module := ""
	if len(modules) > 0 {
		module = "package extend.node.x\n\n" + modules[0]
	}
	e := rules.Engine(t, module)
	w := &world{T: t, api: api, engine: e, events: record.NewFakeRecorder(20), ns: ns, now: time.Now().Truncate(time.Second)}
	w.restart()
	if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		o := &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: w.node(i), Labels: map[string]string{
			"of": ns, kruise.FakeNodeImageKey: "true", corev1.LabelTopologyZone: fmt.Sprintf("%s-z%d", ns, i/2),
		}}}
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// restart is what a manager knows after its start.
func (w *world) restart() {
	w.r = New(reconcile.Deps{Client: w.api, Live: w.api, Events: w.events, Engine: w.engine, Now: func() time.Time { return w.now }}, WithRandom(func(int) int { return 0 }))
}

func (w *world) node(i int) string { return fmt.Sprintf("%s-n%d", w.ns, i) }

func (w *world) job(edit func(*kruise.ImagePullJob)) {
	w.Helper()
	job := &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "warm"}}
	job.Spec.Image = "nginx:1.28"
	job.Spec.Selector = &kruise.ImagePullJobNodeSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"of": w.ns}}}
	job.Spec.Parallelism = ptr.To(intstr.FromInt32(2))
	job.Spec.PullPolicy = &kruise.PullPolicy{TimeoutSeconds: ptr.To[int32](60), BackoffLimit: ptr.To[int32](2)}
	job.Spec.CompletionPolicy.Type = kruise.AlwaysCompletionPolicyType
	job.Spec.ImagePullPolicy = kruise.PullIfNotPresent
	if edit != nil {
		edit(job)
	}
	if err := w.api.Create(w.Context(), job); err != nil {
		w.Fatal(err)
	}
}

func (w *world) get() *kruise.ImagePullJob {
	w.Helper()
	job := &kruise.ImagePullJob{}
	err := w.api.Get(w.Context(), types.NamespacedName{Namespace: w.ns, Name: "warm"}, job)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return job
}

func (w *world) image(i int) *kruise.NodeImage {
	w.Helper()
	o := &kruise.NodeImage{}
	if err := w.api.Get(w.Context(), types.NamespacedName{Name: w.node(i)}, o); err != nil {
		w.Fatal(err)
	}
	return o
}

func (w *world) reconcile() time.Duration {
	w.Helper()
	var last time.Duration
	for range 3 {
		got, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: w.ns, Name: "warm"}})
		if err != nil {
			w.Fatal(err)
		}
		last = got.RequeueAfter
	}
	return last
}

// asked are the numbers of the nodes that have the tag of the job.
func (w *world) asked() (out []int) {
	w.Helper()
	list := &kruise.NodeImageList{}
	if err := w.api.List(w.Context(), list, client.MatchingLabels{"of": w.ns}); err != nil {
		w.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b kruise.NodeImage) int { return cmp.Compare(a.Name, b.Name) })
	for i := range list.Items {
		if tags.FindSpec(list.Items[i].Spec.Images["nginx"], "1.28") != nil {
			out = append(out, i)
		}
	}
	return out
}

// tell does what the agents of some nodes do: it says how far they are.
func (w *world) tell(phase kruise.ImagePullPhase, nodes ...int) {
	w.Helper()
	for _, i := range nodes {
		o := w.image(i)
		tag := tags.FindSpec(o.Spec.Images["nginx"], "1.28")
		o.Status.ImageStatuses = map[string]kruise.ImageStatus{"nginx": {Tags: []kruise.ImageTagStatus{{Tag: "1.28", Version: tag.Version, Phase: phase}}}}
		if err := w.api.Status().Update(w.Context(), o); err != nil {
			w.Fatal(err)
		}
	}
}

// expect looks at the nodes that were asked and at the numbers in the status.
func (w *world) expect(asked []int, desired, active, succeeded, failed int32, message string) {
	w.Helper()
	if got := w.asked(); !slices.Equal(got, asked) {
		w.Errorf("asked are nodes %v, want %v", got, asked)
	}
	s := w.get().Status
	if s.Desired != desired || s.Active != active || s.Succeeded != succeeded || s.Failed != failed || s.Message != message {
		w.Errorf("the status is %+v, want %d desired, %d active, %d succeeded, %d failed, %q", s, desired, active, succeeded, failed, message)
	}
}
