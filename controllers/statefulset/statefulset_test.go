// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is an API server in memory with one StatefulSet, and a kubelet that makes pods
// ready, but for those that are broken.
type world struct {
	t      *testing.T
	c      client.Client
	r      *rollout.Controller
	events *record.FakeRecorder
	now    time.Time
	mu     sync.Mutex // pods are created in parallel
	uids   int
	broken map[string]bool // images that never become ready
	wrote  []string        // what happened to pods, in order
	seen   map[string]types.UID
	sickly types.UID // of a pod that is not ready
}

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, kruise.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func newWorld(t *testing.T, e *engine.Engine, g Gates, objects ...client.Object) *world {
	t.Helper()
	b := fakeclient.NewClientBuilder(testScheme(t)).WithStatusSubresource(&corev1.Pod{}, &kruise.StatefulSet{})
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}} {
		b = b.WithIndex(o, rollout.OwnerIndex, rollout.OwnerUID)
	}
	w := &world{t: t, events: record.NewFakeRecorder(1000), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), broken: map[string]bool{}, seen: map[string]types.UID{}}
	w.c = b.WithObjects(fakeclient.AddNamespaces(objects...)...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			w.mu.Lock()
			w.uids++
			o.SetUID(types.UID(fmt.Sprint(o.GetName(), "/", w.uids)))
			o.SetCreationTimestamp(metav1.NewTime(w.now))
			w.mu.Unlock()
			return c.Create(ctx, o, opts...)
		},
	}).Build()
	w.r = rollout.New(New(g), reconcile.Deps{Client: w.c, Live: w.c, Events: w.events, Engine: e, Now: func() time.Time { return w.now }},
		rollout.WithWindow(inflight.NewFixed(1)))
	w.r.NodeEvents().Create(t.Context(), event.CreateEvent{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, IsInInitialList: true}, nil)
	return w
}

func testEngine(t *testing.T) *engine.Engine {
	t.Helper()
	return rules.Engine(t, "")
}

func testSet(n int32, edit func(*kruise.StatefulSet)) *kruise.StatefulSet {
	labels := map[string]string{"app": "db"}
	set := &kruise.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "shop", UID: "set", Generation: 1},
		Spec: kruise.StatefulSetSpec{
			Replicas: ptr.To(n), Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: "db", PodManagementPolicy: appsv1.ParallelPodManagement,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers:     []corev1.Container{{Name: "main", Image: "db:1"}},
					ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}},
				},
			},
			UpdateStrategy: kruise.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &kruise.RollingUpdateStatefulSetStrategy{PodUpdatePolicy: kruise.RecreatePodUpdatePolicyType},
			},
		},
	}
	if edit != nil {
		edit(set)
	}
	return set
}

func (w *world) set() *kruise.StatefulSet {
	w.t.Helper()
	set := &kruise.StatefulSet{}
	if err := w.c.Get(context.Background(), types.NamespacedName{Namespace: "shop", Name: "db"}, set); err != nil {
		w.t.Fatal(err)
	}
	return set
}

func (w *world) change(edit func(*kruise.StatefulSet)) {
	w.t.Helper()
	set := w.set()
	edit(set)
	set.Generation++
	if err := w.c.Update(context.Background(), set); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pods() map[string]*corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	if err := w.c.List(context.Background(), list); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// reconcile does one round, and notes what it did to pods.
func (w *world) reconcile() {
	w.t.Helper()
	if _, err := w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "db"}}); err != nil {
		w.wrote = append(w.wrote, "error: "+err.Error())
	}
	w.note()
}

func (w *world) note() {
	now := w.pods()
	for _, name := range slices.Sorted(maps.Keys(w.seen)) {
		if p := now[name]; p == nil || p.UID != w.seen[name] {
			w.wrote = append(w.wrote, "-"+name)
			delete(w.seen, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, known := w.seen[name]; !known {
			w.wrote = append(w.wrote, "+"+name+"="+now[name].Spec.Containers[0].Image)
			w.seen[name] = now[name].UID
		}
	}
}

// kubelet runs the pods, as soon as they have a node: with the images of their specs, ready
// unless these are broken.
func (w *world) kubelet() {
	w.t.Helper()
	for _, p := range w.pods() {
		if p.Spec.NodeName == "" {
			p.Spec.NodeName = "node-1"
			if err := w.c.Update(context.Background(), p); err != nil {
				w.t.Fatal(err)
			}
		}
		image := p.Spec.Containers[0].Image
		ready := corev1.ConditionStatus("True")
		if gate := inplace.FindCondition(p, kruise.InPlaceUpdateReady); w.broken[image] || gate == nil || gate.Status != corev1.ConditionTrue {
			ready = "False"
		}
		p.Status.Phase = corev1.PodRunning
		if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].Image != image {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: image, ImageID: "id of " + image, Ready: true}}
		}
		p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(w.now)})
		if err := w.c.Status().Update(context.Background(), p); err != nil {
			w.t.Fatal(err)
		}
	}
}

// settle lets everything happen.
func (w *world) settle() {
	w.t.Helper()
	for range 40 {
		w.reconcile()
		w.kubelet()
		w.now = w.now.Add(time.Second)
	}
}

// did is what happened to pods since the last call.
func (w *world) did() string {
	out := strings.Join(w.wrote, " ")
	w.wrote = nil
	return out
}

func (w *world) images() string {
	var out []string
	pods := w.pods()
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		out = append(out, name+"="+pods[name].Spec.Containers[0].Image)
	}
	return strings.Join(out, " ")
}

func image(tag string) func(*kruise.StatefulSet) {
	return func(set *kruise.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "db:" + tag }
}

func TestScenarios(t *testing.T) {
	e := testEngine(t)
	ordered := func(set *kruise.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement }
	scale := func(n int32) func(*kruise.StatefulSet) {
		return func(set *kruise.StatefulSet) { set.Spec.Replicas = ptr.To(n) }
	}
	rolling := func(edit func(*kruise.RollingUpdateStatefulSetStrategy)) func(*kruise.StatefulSet) {
		return func(set *kruise.StatefulSet) { edit(set.Spec.UpdateStrategy.RollingUpdate) }
	}
	for name, tc := range map[string]struct {
		gates  Gates
		edit   []func(*kruise.StatefulSet)
		change []func(*kruise.StatefulSet)
		broken string
		made   string // by the set as it was made
		did    string // after each change
		images string
	}{
		"OrderedReady creates in ascending order": {edit: []func(*kruise.StatefulSet){ordered}, made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", images: "db-0=db:1 db-1=db:1 db-2=db:1"},
		"OrderedReady waits for a pod that is not ready": {
			edit: []func(*kruise.StatefulSet){ordered}, broken: "db:1", made: "+db-0=db:1", images: "db-0=db:1",
		},
		"Parallel waits for none":                    {broken: "db:1", made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", images: "db-0=db:1 db-1=db:1 db-2=db:1"},
		"a scale-in takes the highest ordinal first": {edit: []func(*kruise.StatefulSet){ordered}, made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", change: []func(*kruise.StatefulSet){scale(1)}, did: "-db-2 -db-1", images: "db-0=db:1"},
		"a reserved ordinal has no pod": {
			edit: []func(*kruise.StatefulSet){func(set *kruise.StatefulSet) {
				set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(1), intstr.FromString("3-4")}
			}},
			made: "+db-0=db:1 +db-2=db:1 +db-5=db:1", images: "db-0=db:1 db-2=db:1 db-5=db:1",
		},
		"a pod whose ordinal is reserved goes once another is there": {
			made:   "+db-0=db:1 +db-1=db:1 +db-2=db:1",
			change: []func(*kruise.StatefulSet){func(set *kruise.StatefulSet) { set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(0)} }},
			did:    "+db-3=db:1 -db-0", images: "db-1=db:1 db-2=db:1 db-3=db:1",
		},
		"ordinals start where the gate lets them": {
			gates: Gates{StartOrdinal: true}, edit: []func(*kruise.StatefulSet){func(set *kruise.StatefulSet) { set.Spec.Ordinals = &kruise.StatefulSetOrdinals{Start: 7} }},
			made: "+db-7=db:1 +db-8=db:1 +db-9=db:1", images: "db-7=db:1 db-8=db:1 db-9=db:1",
		},
		"without the gate they start at 0": {
			edit: []func(*kruise.StatefulSet){func(set *kruise.StatefulSet) { set.Spec.Ordinals = &kruise.StatefulSetOrdinals{Start: 7} }},
			made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", images: "db-0=db:1 db-1=db:1 db-2=db:1",
		},
		"an update recreates one at a time, the highest first": {
			made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", change: []func(*kruise.StatefulSet){image("2")},
			did: "-db-2 +db-2=db:2 -db-1 +db-1=db:2 -db-0 +db-0=db:2", images: "db-0=db:2 db-1=db:2 db-2=db:2",
		},
		"maxUnavailable lets more go at once": {
			edit: []func(*kruise.StatefulSet){rolling(func(ru *kruise.RollingUpdateStatefulSetStrategy) { ru.MaxUnavailable = ptr.To(intstr.FromInt32(2)) })},
			made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", change: []func(*kruise.StatefulSet){image("2")},
			did: "-db-1 -db-2 +db-1=db:2 +db-2=db:2 -db-0 +db-0=db:2", images: "db-0=db:2 db-1=db:2 db-2=db:2",
		},
		"the partition keeps the lowest ordinals": {
			edit: []func(*kruise.StatefulSet){rolling(func(ru *kruise.RollingUpdateStatefulSetStrategy) { ru.Partition = ptr.To[int32](2) })},
			made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", change: []func(*kruise.StatefulSet){image("2")},
			did: "-db-2 +db-2=db:2", images: "db-0=db:1 db-1=db:1 db-2=db:2",
		},
		"a reserved ordinal occupies a position below the partition": {
			edit: []func(*kruise.StatefulSet){
				func(set *kruise.StatefulSet) { set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(0)} },
				rolling(func(ru *kruise.RollingUpdateStatefulSetStrategy) { ru.Partition = ptr.To[int32](1) }),
			},
			made: "+db-1=db:1 +db-2=db:1 +db-3=db:1", change: []func(*kruise.StatefulSet){image("2")},
			did: "-db-3 +db-3=db:2 -db-2 +db-2=db:2", images: "db-1=db:1 db-2=db:2 db-3=db:2",
		},
		"a pod below the partition is made of the current revision": {
			edit: []func(*kruise.StatefulSet){rolling(func(ru *kruise.RollingUpdateStatefulSetStrategy) { ru.Partition = ptr.To[int32](4) })},
			made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", change: []func(*kruise.StatefulSet){image("2"), scale(5)},
			did: "+db-3=db:1 +db-4=db:2", images: "db-0=db:1 db-1=db:1 db-2=db:1 db-3=db:1 db-4=db:2",
		},
		"OnDelete updates none": {
			edit: []func(*kruise.StatefulSet){func(set *kruise.StatefulSet) {
				set.Spec.UpdateStrategy = kruise.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
			}},
			made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", change: []func(*kruise.StatefulSet){image("2")},
			images: "db-0=db:1 db-1=db:1 db-2=db:1",
		},
		"a paused update waits": {
			edit: []func(*kruise.StatefulSet){rolling(func(ru *kruise.RollingUpdateStatefulSetStrategy) { ru.Paused = true })},
			made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", change: []func(*kruise.StatefulSet){image("2")}, images: "db-0=db:1 db-1=db:1 db-2=db:1",
		},
		"an update in place keeps the pods": {
			edit: []func(*kruise.StatefulSet){rolling(func(ru *kruise.RollingUpdateStatefulSetStrategy) {
				ru.PodUpdatePolicy = kruise.InPlaceIfPossiblePodUpdatePolicyType
			})},
			made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", change: []func(*kruise.StatefulSet){image("2")}, images: "db-0=db:2 db-1=db:2 db-2=db:2",
		},
		"a revision that never becomes ready stops the update": {
			made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", broken: "db:2", change: []func(*kruise.StatefulSet){image("2")},
			did: "-db-2 +db-2=db:2", images: "db-0=db:1 db-1=db:1 db-2=db:2",
		},
		"the next revision replaces one that never became ready, OrderedReady or not": {
			edit: []func(*kruise.StatefulSet){ordered}, made: "+db-0=db:1 +db-1=db:1 +db-2=db:1", broken: "db:2",
			change: []func(*kruise.StatefulSet){image("2"), image("3")},
			did:    "-db-2 +db-2=db:2 -db-2 +db-2=db:3 -db-1 +db-1=db:3 -db-0 +db-0=db:3", images: "db-0=db:3 db-1=db:3 db-2=db:3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e, tc.gates, testSet(3, func(set *kruise.StatefulSet) {
				for _, edit := range tc.edit {
					edit(set)
				}
			}))
			w.broken[tc.broken] = true
			w.settle()
			if got := w.did(); got != tc.made {
				t.Errorf("first it did %s, want %s", got, tc.made)
			}
			for _, change := range tc.change {
				w.change(change)
				w.settle()
			}
			if got := w.did(); got != tc.did {
				t.Errorf("then it did %s, want %s", got, tc.did)
			}
			if got := w.images(); got != tc.images {
				t.Errorf("in the end there are %s, want %s", got, tc.images)
			}
		})
	}
}
