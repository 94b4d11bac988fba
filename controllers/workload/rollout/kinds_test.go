// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/engine/bundle"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/rules"
)

// plainKind is the smallest kind there is: it moves pods, and creates and deletes none.
type plainKind struct{}

func (*plainKind) WorkloadType() Type {
	return Type{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		New:              func() client.Object { return &appsv1.ReplicaSet{} },
		NewList:          func() client.ObjectList { return &appsv1.ReplicaSetList{} },
		Status:           func(o client.Object) any { return &o.(*appsv1.ReplicaSet).Status },
	}
}
func (*plainKind) ReadSpec(client.Object) (Spec, error)                          { return Spec{}, nil }
func (*plainKind) ResolveTemplates(context.Context, *Round) (Templates, error)   { return nil, nil }
func (*plainKind) DeletionAsked(client.Object, *corev1.Pod) bool                 { return false }
func (*plainKind) ScalePods(context.Context, *Round, *Facts) (bool, error)       { return false, nil }
func (*plainKind) RecreatePod(context.Context, *Round, *Facts, *facts.Pod) error { return nil }
func (*plainKind) ReportStatus(context.Context, *Round, *Facts, Result) error    { return nil }
func (*plainKind) TruncateHistory(context.Context, *Round, *Facts, bool) error   { return nil }
func (*plainKind) ComputeDifference(f *Facts) UpdateDelta {
	old := 0
	for _, p := range f.Pods {
		incrementIf(&old, !p.Facts.Updated)
	}
	if old == 0 {
		return UpdateDelta{} // as kinds do that count only what they move
	}
	return UpdateDelta{Update: max(old-f.Strategy.Partition, 0), MaxUnavailable: f.Strategy.MaxUnavailable}
}

// nodeKind keeps one pod on each node, as a DaemonSet does: a pod is known by its node,
// and moved by being deleted and created again.
type nodeKind struct {
	plainKind
	nodes []string
	// rigid has no pod be unavailable.
	rigid bool
	// paused and onDelete are of the strategy.
	paused, onDelete bool
	// held is the condition UpdateHeld after the last round.
	held *condition.Condition
	// of is Type.NodeOf.
	of func(*corev1.Pod) string
}

func (k *nodeKind) WorkloadType() Type {
	return Type{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		New:              func() client.Object { return &appsv1.DaemonSet{} },
		NewList:          func() client.ObjectList { return &appsv1.DaemonSetList{} },
		Status:           func(o client.Object) any { return &o.(*appsv1.DaemonSet).Status },
		NodeOf:           k.of,
	}
}

func (k *nodeKind) ReadSpec(o client.Object) (Spec, error) {
	set := o.(*appsv1.DaemonSet)
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	s := Spec{
		Replicas: len(k.nodes), Selector: selector,
		Strategy: points.Strategy{Type: "RollingUpdate", Policy: "ReCreate", MaxUnavailable: 1},
	}
	s.Strategy.Paused = k.paused
	if k.onDelete {
		s.Strategy.Type = OnDelete
	}
	if k.rigid {
		s.Strategy.MaxUnavailable = 0
	}
	return s, err
}

func (k *nodeKind) ResolveTemplates(ctx context.Context, r *Round) (Templates, error) {
	set := r.Workload.(*appsv1.DaemonSet)
	return r.ResolveHistory(ctx, revision.Owner{Kind: k.WorkloadType().GroupVersionKind, Selector: set.Spec.Selector, Template: &set.Spec.Template}, inplace.NewClassifier())
}

func (k *nodeKind) ScalePods(ctx context.Context, r *Round, f *Facts) (bool, error) {
	missing := slices.Clone(k.nodes)
	for _, p := range f.Pods {
		missing = slices.DeleteFunc(missing, func(node string) bool { return p.Spec.NodeName == node })
	}
	acts := make([]func() error, len(missing))
	for i, node := range missing {
		acts[i] = func() error {
			set, t := r.Workload.(*appsv1.DaemonSet), f.Templates.(*PodTemplates)
			pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
			pod.Namespace, pod.Name, pod.Spec.NodeName = set.Namespace, set.Name+"-"+node, node
			pod.UID = types.UID(fmt.Sprint(node, r.Now)) // the fake API server gives none
			pod.Labels[RevisionLabel] = t.LabelValue(t.UpdateRevision())
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, k.WorkloadType().GroupVersionKind)}
			if err := r.CachedClient().Create(ctx, pod); err != nil {
				return &CreateError{Err: err}
			}
			r.RecordCreated(pod)
			return nil
		}
	}
	return len(acts) > 0, r.SlowStart(false, acts)
}

func (k *nodeKind) RecreatePod(ctx context.Context, r *Round, f *Facts, p *facts.Pod) error {
	return r.DeletePod(ctx, f, p)
}

func (k *nodeKind) ReportStatus(ctx context.Context, r *Round, f *Facts, res Result) error {
	c := f.CountPods()
	k.held = res.HoldCondition(k.held != nil)
	return r.WriteStatus(ctx, &appsv1.DaemonSetStatus{
		CurrentNumberScheduled: int32(c.Total), DesiredNumberScheduled: int32(len(k.nodes)),
		NumberReady: int32(c.Ready), UpdatedNumberScheduled: int32(c.Updated),
	})
}

// sidecarKind changes an image of pods that others own, as a SidecarSet does: its pods are
// found by labels, and its revisions are versions that they are annotated with.
type sidecarKind struct{ plainKind }

const sidecarVersion = "sidecar-version"

func (k *sidecarKind) WorkloadType() Type {
	return Type{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		New:              func() client.Object { return &corev1.ConfigMap{} },
		NewList:          func() client.ObjectList { return &corev1.ConfigMapList{} },
		Status:           func(o client.Object) any { return &o.(*corev1.ConfigMap).BinaryData },
		Workloads: func(_ context.Context, pod *corev1.Pod) ([]Reference, error) {
			if pod.Labels["app"] != "web" {
				return nil, nil
			}
			return []Reference{{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: "agent"}, UID: "agent"}}, nil
		},
	}
}

func (k *sidecarKind) ReadSpec(client.Object) (Spec, error) {
	return Spec{
		Selector: labels.SelectorFromSet(labels.Set{"app": "web"}),
		Strategy: points.Strategy{Type: "RollingUpdate", Policy: "InPlaceOnly", MaxUnavailable: 2},
	}, nil
}

func (k *sidecarKind) ResolveTemplates(_ context.Context, r *Round) (Templates, error) {
	return versions(r.Workload.(*corev1.ConfigMap).Data["version"]), nil
}

// versions are templates of which only the newest matters.
type versions string

func (v versions) CurrentRevision() string                       { return string(v) }
func (v versions) UpdateRevision() string                        { return string(v) }
func (v versions) PodRevision(pod *corev1.Pod) string            { return pod.Annotations[sidecarVersion] }
func (v versions) HasRevision(pod *corev1.Pod, name string) bool { return v.PodRevision(pod) == name }
func (v versions) LabelValue(name string) string                 { return name }
func (v versions) CompareRevisions(string, string) (Comparison, error) {
	return Comparison{Known: true, Diff: inplace.Difference{Changes: []points.TemplateChange{
		{Class: points.ChangeImage, Op: "replace", Path: "/spec/containers/0/image", Container: "agent"},
	}}}, nil
}

// UpdateInPlace implements InPlaceUpdater.
func (k *sidecarKind) UpdateInPlace(ctx context.Context, r *Round, f *Facts, m Move) error {
	pod := m.Pod.DeepCopy()
	pod.Annotations = map[string]string{sidecarVersion: f.TargetRevision()}
	pod.Spec.Containers[0].Image = "agent:" + f.TargetRevision()
	err := r.CachedClient().Patch(ctx, pod, client.MergeFrom(m.Pod.Pod))
	r.RecordWrite(ctx, m.Pod.Pod, pod, err)
	return err
}

// kindCluster is a cluster with one workload, whose pods become ready when the test
// makes them ready, and a cache that shows everything at once.
type kindCluster struct {
	t   *testing.T
	api client.Client
	c   *Controller
	now time.Time
	key types.NamespacedName
	// known are the pods that the controller was shown.
	known map[types.UID]*corev1.Pod
}

func newKindCluster(t *testing.T, kind Kind, bundles bundle.Set, objects ...client.Object) *kindCluster {
	t.Helper()
	return newInterceptedCluster(t, kind, bundles, interceptor.Funcs{}, objects...)
}

// newInterceptedCluster has the requests of the controller go through functions.
func newInterceptedCluster(t *testing.T, kind Kind, bundles bundle.Set, requests interceptor.Funcs, objects ...client.Object) *kindCluster {
	t.Helper()
	e := rules.Engine(t, "")
	if err := e.ActivateBundles(t.Context(), bundles); err != nil {
		t.Fatal(err)
	}
	b := fakeclient.NewClientBuilder(apiserver.Scheme(t)).WithObjects(fakeclient.AddNamespaces(objects...)...).WithStatusSubresource(&appsv1.DaemonSet{}, &corev1.Pod{}, &kruise.ContainerRecreateRequest{}).WithInterceptorFuncs(requests)
	for _, o := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}} {
		b = b.WithIndex(o, OwnerIndex, OwnerUID)
	}
	k := &kindCluster{t: t, api: b.Build(), now: time.Unix(1_000_000, 0), key: client.ObjectKeyFromObject(objects[0])}
	k.c = New(kind, reconcile.Deps{Client: k.api, Live: k.api, Events: record.NewFakeRecorder(1000), Engine: e, Now: func() time.Time { return k.now }}, WithParallelWrites(1))
	if kind, ok := kind.(*nodeKind); ok {
		for _, name := range kind.nodes {
			k.c.NodeEvents().Create(t.Context(), event.CreateEvent{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}}, &countingQueue{})
		}
	}
	return k
}

// round reconciles once, and shows the controller what became of the pods.
func (k *kindCluster) round() {
	k.t.Helper()
	if _, err := k.c.Reconcile(k.t.Context(), reconcile.Request{NamespacedName: k.key}); err != nil {
		k.t.Fatal(err)
	}
	k.now = k.now.Add(time.Minute)
	q, gone := &countingQueue{}, k.known
	k.known = map[types.UID]*corev1.Pod{}
	for _, p := range k.pods() {
		k.c.PodEvents().Create(k.t.Context(), event.CreateEvent{Object: p}, q)
		k.known[p.UID] = p
		delete(gone, p.UID)
	}
	for _, p := range gone {
		k.c.PodEvents().Delete(k.t.Context(), event.DeleteEvent{Object: p}, q)
	}
}

func (k *kindCluster) pods() []*corev1.Pod {
	k.t.Helper()
	list := &corev1.PodList{}
	if err := k.api.List(k.t.Context(), list); err != nil {
		k.t.Fatal(err)
	}
	out := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out
}

// ready makes all pods ready.
func (k *kindCluster) ready() {
	k.t.Helper()
	for _, p := range k.pods() {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(k.now)}}
		if err := k.api.Status().Update(k.t.Context(), p); err != nil {
			k.t.Fatal(err)
		}
	}
}

type countingQueue struct {
	queue
	added []reconcile.Request
}

func (q *countingQueue) Add(r reconcile.Request) { q.added = append(q.added, r) }

func image(p *corev1.Pod) string { return p.Spec.Containers[0].Image }

func logSet() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "log", UID: "nodes", Generation: 1}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "log"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "log"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "log:1"}}},
		},
	}}
}

// A kind that is keyed by node brings its pods up, and moves them one at a time, in the
// order of a rule, while the plan, the walk and the clamp are those of the loop.
func TestAKindKeyedByNode(t *testing.T) {
	set := logSet()
	order, err := bundle.FromFiles("order", map[string]string{"p.rego": "package extend.rollout.order\n\nrank := {pod.name: -1 | some pod in input.pods; pod.node == \"n2\"}\n"})
	if err != nil {
		t.Fatal(err)
	}
	k := newKindCluster(t, &nodeKind{nodes: []string{"n1", "n2", "n3"}, of: func(p *corev1.Pod) string { return p.Spec.NodeName }}, bundle.Set{order}, set)
	k.round()
	if got := len(k.pods()); got != 3 {
		t.Fatalf("%d pods for 3 nodes", got)
	}
	k.ready()
	k.round()
	if err := k.api.Get(t.Context(), k.key, set); err != nil {
		t.Fatal(err)
	}
	if set.Status.NumberReady != 3 || set.Status.UpdatedNumberScheduled != 3 {
		t.Errorf("the status is %+v", set.Status)
	}
	set.Spec.Template.Spec.Containers[0].Image = "log:2"
	if err := k.api.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	var moved []string
	told := 0
	for range 12 {
		before := map[string]string{}
		for _, p := range k.pods() {
			before[p.Spec.NodeName] = image(p)
		}
		k.round()
		a, _ := k.c.Rounds.ExplainWorkload(k.c.typ.GroupKind(), k.key.Namespace, k.key.Name)
		told += len(a.Nodes)
		for _, n := range a.Nodes {
			if n.Pod != "log-"+n.Name || n.Reason == "" || n.Verdict == explain.UpToDate {
				t.Errorf("told of a node: %+v", n)
			}
		}
		gone := 0
		now := map[string]bool{}
		for _, p := range k.pods() {
			now[p.Spec.NodeName] = true
		}
		for node, was := range before {
			if !now[node] {
				gone++
				moved = append(moved, node)
				if was != "log:1" {
					t.Errorf("the pod of %s was moved again", node)
				}
			}
		}
		if gone > 1 {
			t.Fatalf("%d pods were moved at once, and one may be unavailable", gone)
		}
		k.ready()
	}
	if told < 6 {
		t.Errorf("%d nodes whose pods are to be updated were told of", told)
	}
	if len(moved) != 3 || moved[0] != "n2" {
		t.Errorf("the pods of %v were moved, in this order", moved)
	}
	for _, p := range k.pods() {
		if image(p) != "log:2" {
			t.Errorf("%s runs %s", p.Name, image(p))
		}
	}
}

// A kind that does not own its pods finds them by labels, changes them in its own way, and
// is held by rules of users as any other; pods of other workloads are left alone.
func TestAKindThatDoesNotOwnItsPods(t *testing.T) {
	objects := []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: "agent"}, Data: map[string]string{"version": "1"}}}
	for i := range 5 {
		app, owner := "web", types.UID("others")
		if i == 4 {
			app = "db"
		}
		objects = append(objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprint("u", i)), Labels: map[string]string{"app": app}, Annotations: map[string]string{sidecarVersion: "1"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: owner, Controller: new(bool)}},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent:1"}}},
		})
	}
	hold, err := bundle.FromFiles("hold", map[string]string{"p.rego": "package extend.rollout.last\n\nhold contains {\"reason\": \"NotYet\", \"message\": \"m\", \"pod\": pod.name} if {\n\tsome pod in input.pods\n\tpod.name == \"web-2\"\n}\n"})
	if err != nil {
		t.Fatal(err)
	}
	k := newKindCluster(t, &sidecarKind{}, bundle.Set{hold}, objects...)
	k.ready()
	k.round()
	cm := &corev1.ConfigMap{}
	if err := k.api.Get(t.Context(), k.key, cm); err != nil {
		t.Fatal(err)
	}
	cm.Data["version"] = "2"
	if err := k.api.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	k.round()
	if got := k.at("agent:2"); len(got) != 2 {
		t.Errorf("%v are moved, and two may be unavailable", got)
	}
	for range 4 {
		k.ready()
		k.round()
	}
	if got := k.at("agent:2"); !slices.Equal(got, []string{"web-0", "web-1", "web-3"}) {
		t.Errorf("in the end %v are moved", got)
	}
	q := &countingQueue{}
	db := objects[5].(*corev1.Pod)
	k.c.PodEvents().Create(t.Context(), event.CreateEvent{Object: db}, q)
	if len(q.added) != 0 {
		t.Errorf("a pod of another app has %v reconciled", q.added)
	}
	if answer, ok := k.c.Rounds.ExplainWorkload(schema.GroupKind{Kind: "ConfigMap"}, "shop", "agent"); !ok || answer.Reason != "NotYet" {
		t.Error("the hold is not explained")
	}
	if err := k.api.Get(t.Context(), client.ObjectKeyFromObject(db), db); apierrors.IsNotFound(err) || image(db) != "agent:1" {
		t.Errorf("the pod of another app runs %s: %v", image(db), err)
	}
}

// at are the pods that run an image, by name.
func (k *kindCluster) at(want string) (out []string) {
	for _, p := range k.pods() {
		if image(p) == want {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}
