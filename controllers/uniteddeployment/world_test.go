// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

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
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is a cluster in memory with the UnitedDeployment shop/web. Its zones have room for so
// many pods, and it runs the pods of children as the controllers of Kubernetes would.
type world struct {
	*testing.T
	api    client.WithWatch
	engine *engine.Engine
	events *record.FakeRecorder
	rounds *explain.Store
	r      *Reconciler
	now    time.Time
	key    client.ObjectKey
	// room is how many pods the zone of a subset takes; without an entry any number.
	room map[string]int
	// crashing are pods that run and are not ready.
	crashing map[string]bool
	// crash is how many pods of a subset run and are not ready.
	crash  map[string]int
	writes []string
}

func newEngine(t *testing.T) *engine.Engine {
	t.Helper()
	return rules.Engine(t, "")
}

func newWorld(t *testing.T, edit func(*kruise.UnitedDeployment), more ...client.Object) *world {
	t.Helper()
	return newWorldOf(t, newEngine(t), edit, more...)
}

func newWorldOf(t *testing.T, e *engine.Engine, edit func(*kruise.UnitedDeployment), more ...client.Object) *world {
	t.Helper()
	w := &world{
		T: t, engine: e, events: record.NewFakeRecorder(10_000), rounds: explain.NewStore(), now: time.Unix(1_700_000_000, 0),
		key: client.ObjectKey{Namespace: "shop", Name: "web"}, room: map[string]int{}, crashing: map[string]bool{},
	}
	d := &kruise.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "ud", Generation: 1, CreationTimestamp: metav1.NewTime(w.now)}}
	d.Spec.Replicas = ptr.To[int32](10)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template.CloneSetTemplate = &kruise.CloneSetTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	d.Spec.Template.CloneSetTemplate.Spec.Template = pods("nginx:1")
	for _, name := range []string{"a", "b", "c"} {
		d.Spec.Topology.Subsets = append(d.Spec.Topology.Subsets, kruise.Subset{Name: name, NodeSelectorTerm: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
		}})
	}
	if edit != nil {
		edit(d)
	}
	objects := more
	if edit != nil || len(more) == 0 {
		objects = append(objects, d)
	}
	// The controller writes several children at once.
	var writing sync.Mutex
	noted := func(verb string, o client.Object) {
		writing.Lock()
		defer writing.Unlock()
		w.writes = append(w.writes, verb+" "+o.GetName())
	}
	scheme := apiserver.Scheme(t)
	b := fakeclient.NewClientBuilder(scheme).WithObjects(fakeclient.AddNamespaces(objects...)...).
		WithStatusSubresource(&kruise.UnitedDeployment{}, &kruise.CloneSet{}, &kruise.StatefulSet{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &corev1.Pod{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if o.GetUID() == "" {
					o.SetUID(uuid.NewUUID())
				}
				if created := o.GetCreationTimestamp(); created.IsZero() {
					o.SetCreationTimestamp(metav1.NewTime(w.now))
				}
				o.SetGeneration(1)
				err := c.Create(ctx, o, opts...)
				noted("create", o)
				return err
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				noted("update", o)
				o.SetGeneration(o.GetGeneration() + 1)
				return c.Update(ctx, o, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				noted("delete", o)
				return c.Delete(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				noted("patch", o)
				return c.Patch(ctx, o, p, opts...)
			},
		})
	for _, o := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}, &kruise.CloneSet{}, &kruise.StatefulSet{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}} {
		b = b.WithIndex(o, rollout.OwnerIndex, rollout.OwnerUID)
	}
	w.api = b.Build()
	w.r = New(reconcile.Deps{Client: w.api, Live: w.api, Events: w.events, Engine: w.engine, Rounds: w.rounds, Now: func() time.Time { return w.now }})
	return w
}

func pods(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

// rule has a rule of a user decide as well.
func (w *world) rule(rule string) {
	w.Helper()
	b, err := bundle.FromFiles("rules", map[string]string{"x.rego": "package extend.placement.x\n\n" + rule})
	if err != nil {
		w.Fatal(err)
	}
	if err := w.engine.ActivateBundles(w.Context(), bundle.Set{b}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) get() *kruise.UnitedDeployment {
	w.Helper()
	d := &kruise.UnitedDeployment{}
	if err := w.api.Get(w.Context(), w.key, d); err != nil {
		w.Fatal(err)
	}
	return d
}

func (w *world) edit(change func(*kruise.UnitedDeployment)) {
	w.Helper()
	d := w.get()
	change(d)
	if err := w.api.Update(w.Context(), d); err != nil {
		w.Fatal(err)
	}
}

func (w *world) reconcile() time.Duration {
	w.Helper()
	res, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: w.key})
	if err != nil {
		w.Fatal(err)
	}
	return res.RequeueAfter
}

// counts are the replicas of the children, such as "a=3 b=7".
func (w *world) counts() string {
	w.Helper()
	var out []string
	for _, c := range w.children() {
		out = append(out, fmt.Sprintf("%s=%d", c.subsetName(), c.replicas))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (w *world) children() (out []*child) {
	w.Helper()
	for _, k := range allKinds() {
		found, err := w.r.listChildren(w.Context(), w.get(), k)
		if err != nil {
			w.Fatal(err)
		}
		out = append(out, found...)
	}
	return out
}

func (w *world) child(subset string) *child {
	w.Helper()
	for _, c := range w.children() {
		if c.subsetName() == subset {
			return c
		}
	}
	w.Fatalf("subset %s has no child", subset)
	return nil
}

// run does what the controllers of CloneSets, the scheduler and the kubelets would.
func (w *world) run() {
	w.Helper()
	for _, c := range w.children() {
		set, ok := c.Object.(*kruise.CloneSet)
		if !ok {
			continue
		}
		list := &corev1.PodList{}
		if err := w.api.List(w.Context(), list, client.InNamespace("shop"), client.MatchingFields{rollout.OwnerIndex: string(set.UID)}); err != nil {
			w.Fatal(err)
		}
		w.scale(set, list.Items)
		if err := w.api.List(w.Context(), list, client.InNamespace("shop"), client.MatchingFields{rollout.OwnerIndex: string(set.UID)}); err != nil {
			w.Fatal(err)
		}
		w.schedule(set, list.Items)
	}
}

// scale creates and deletes pods: those that wait go first.
func (w *world) scale(set *kruise.CloneSet, have []corev1.Pod) {
	w.Helper()
	slices.SortFunc(have, func(a, b corev1.Pod) int {
		if bound := strings.Compare(a.Spec.NodeName, b.Spec.NodeName); bound != 0 {
			return bound
		}
		return strings.Compare(a.Name, b.Name)
	})
	for len(have) > int(*set.Spec.Replicas) {
		if err := w.api.Delete(w.Context(), &have[0]); err != nil {
			w.Fatal(err)
		}
		have = have[1:]
	}
	for n := len(have); n < int(*set.Spec.Replicas); n++ {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			GenerateName: set.Name + "-", Namespace: "shop", Labels: maps.Clone(set.Spec.Template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, cloneSets().GroupVersionKind)},
		}, Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Status.Phase = corev1.PodPending
		if err := w.api.Create(w.Context(), pod); err != nil {
			w.Fatal(err)
		}
	}
}

// schedule puts pods onto nodes while there is room, and says so in the status of the set.
func (w *world) schedule(set *kruise.CloneSet, all []corev1.Pod) {
	w.Helper()
	subset := set.Labels[kruise.SubsetNameKey]
	room, limited := w.room[subset]
	for i := range all {
		if all[i].Spec.NodeName != "" {
			room--
		}
	}
	status := kruise.CloneSetStatus{ObservedGeneration: set.Generation, Replicas: int32(len(all))}
	for i := range all {
		pod := &all[i]
		if pod.Spec.NodeName == "" && (!limited || room > 0) {
			room--
			pod.Spec.NodeName = "node-" + subset
			if err := w.api.Update(w.Context(), pod); err != nil {
				w.Fatal(err)
			}
		}
		is := corev1.ConditionFalse
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		if pod.Spec.NodeName != "" {
			pod.Status.Phase = corev1.PodRunning
			if !w.crashing[pod.Name] && i >= w.crash[subset] {
				is = corev1.ConditionTrue
				status.ReadyReplicas++
				status.AvailableReplicas++
			}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is, LastTransitionTime: w.readySince(pod, is)}}
		}
		if pod.Labels[kruise.ControllerRevisionHashKey] == set.Labels[kruise.ControllerRevisionHashKey] {
			status.UpdatedReplicas++
			if is == corev1.ConditionTrue {
				status.UpdatedReadyReplicas++
			}
		}
		if err := w.api.Status().Update(w.Context(), pod); err != nil {
			w.Fatal(err)
		}
	}
	set.Status = status
	if err := w.api.Status().Update(w.Context(), set); err != nil {
		w.Fatal(err)
	}
}

// readySince keeps the time of the condition that the pod had.
func (w *world) readySince(pod *corev1.Pod, is corev1.ConditionStatus) metav1.Time {
	stored := &corev1.Pod{}
	if err := w.api.Get(w.Context(), client.ObjectKeyFromObject(pod), stored); err != nil {
		w.Fatal(err)
	}
	for _, c := range stored.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == is {
			return c.LastTransitionTime
		}
	}
	return metav1.NewTime(w.now)
}

// settle runs for some time, in steps of a second.
func (w *world) settle(during time.Duration) {
	w.Helper()
	for end := w.now.Add(during); w.now.Before(end); w.now = w.now.Add(time.Second) {
		w.reconcile()
		w.run()
	}
	w.reconcile()
}

func (w *world) condition(subset string) string {
	w.Helper()
	for _, s := range w.get().Status.SubsetStatuses {
		if c := schedulableCondition(&s); s.Name == subset && c != nil {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

func (w *world) told() (out []string) {
	for {
		select {
		case e := <-w.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func limits(d *kruise.UnitedDeployment, adaptive *kruise.AdaptiveUnitedDeploymentStrategy, most ...int) {
	d.Spec.Topology.ScheduleStrategy.Type = kruise.AdaptiveUnitedDeploymentScheduleStrategyType
	d.Spec.Topology.ScheduleStrategy.Adaptive = adaptive
	for i, n := range most {
		d.Spec.Topology.Subsets[i].MaxReplicas = ptr.To(intstr.FromInt(n))
	}
}
