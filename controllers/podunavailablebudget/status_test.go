// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/test/fakeclient"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const set = "set-uid"

func pod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
			Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"pub.kruise.io/related-pub": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: set, Controller: ptr.To(true)}},
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, e := range edits {
		e(p)
	}
	return p
}

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func leaving(p *corev1.Pod) {
	p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.NewTime(noon)), []string{"test/x"}
}

func stateful(replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: set}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}}
}

// budget protects the StatefulSet web.
func newBudget(edits ...func(*policy.PodUnavailableBudget)) *policy.PodUnavailableBudget {
	b := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "b", Generation: 7}}
	b.Spec.TargetReference = &policy.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	for _, e := range edits {
		e(b)
	}
	return b
}

func bySelector(b *policy.PodUnavailableBudget) {
	b.Spec.TargetReference = nil
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func least(v intstr.IntOrString) func(*policy.PodUnavailableBudget) {
	return func(b *policy.PodUnavailableBudget) { b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, &v }
}

func at(v intstr.IntOrString) func(*policy.PodUnavailableBudget) {
	return func(b *policy.PodUnavailableBudget) { b.Spec.MaxUnavailable = &v }
}

func outOf(n int32) func(*policy.PodUnavailableBudget) {
	return func(b *policy.PodUnavailableBudget) { b.Spec.ProtectTotalReplicas = &n }
}

func disrupted(name string, age time.Duration) func(*policy.PodUnavailableBudget) {
	return func(b *policy.PodUnavailableBudget) {
		if b.Status.DisruptedPods == nil {
			b.Status.DisruptedPods = map[string]metav1.Time{}
		}
		b.Status.DisruptedPods[name] = metav1.NewTime(noon.Add(-age))
	}
}

func updated(name string, age time.Duration) func(*policy.PodUnavailableBudget) {
	return func(b *policy.PodUnavailableBudget) {
		b.Status.UnavailablePods = map[string]metav1.Time{name: metav1.NewTime(noon.Add(-age))}
	}
}

type cluster struct {
	client.WithWatch
	r      *Reconciler
	events *record.FakeRecorder
	covers []string
}

func (c *cluster) CoverNamespace(_ context.Context, namespace string) error {
	c.covers = append(c.covers, namespace)
	return nil
}

// newCluster has a cache that shows what there is. past is what is read past it,
// where that is something else.
func newCluster(t *testing.T, past client.Reader, on interceptor.Funcs, objects ...client.Object) *cluster {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policy.AddToScheme, kruise.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{events: record.NewFakeRecorder(100)}
	c.WithWatch = fakeclient.NewClientBuilder(s).WithObjects(objects...).WithStatusSubresource(&policy.PodUnavailableBudget{}).WithInterceptorFuncs(on).
		WithIndex(&corev1.Pod{}, rollout.OwnerIndex, ownerUID).WithIndex(&appsv1.ReplicaSet{}, rollout.OwnerIndex, ownerUID).
		WithIndex(&policy.PodUnavailableBudget{}, targetIndex, indexByTarget).WithIndex(&policy.PodUnavailableBudget{}, labelIndex, indexByLabel).Build()
	if past == nil {
		past = c
	}
	c.r = New(reconcile.Deps{Client: c, Live: past, Events: c.events, Now: func() time.Time { return noon }}, NewFinder(c, scale.NewFinder(c, nil)), WithNamespaces(c))
	return c
}

func (c *cluster) reconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return c.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}})
}

func (c *cluster) told() string {
	var out []string
	for len(c.events.Events) > 0 {
		out = append(out, <-c.events.Events)
	}
	return strings.Join(out, "; ")
}

// summary is allowed/current/desired/total, and who is recorded.
func (c *cluster) summary(t *testing.T) string {
	t.Helper()
	b := &policy.PodUnavailableBudget{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, b); err != nil {
		t.Fatal(err)
	}
	s := b.Status
	if s.ObservedGeneration != 7 {
		t.Errorf("the status is of generation %d", s.ObservedGeneration)
	}
	out := fmt.Sprintf("%d/%d/%d/%d", s.UnavailableAllowed, s.CurrentAvailable, s.DesiredAvailable, s.TotalReplicas)
	for _, name := range []string{"a", "b", "c", "old"} {
		if _, ok := s.DisruptedPods[name]; ok {
			out += " disrupted:" + name
		}
		if _, ok := s.UnavailablePods[name]; ok {
			out += " unavailable:" + name
		}
	}
	return out
}

func TestStatus(t *testing.T) {
	three := []client.Object{stateful(3), pod("a"), pod("b"), pod("c")}
	with := func(edit func(*corev1.Pod)) []client.Object {
		return []client.Object{stateful(3), pod("a", edit), pod("b"), pod("c")}
	}
	percent := intstr.FromString
	for name, tc := range map[string]struct {
		budget  *policy.PodUnavailableBudget
		objects []client.Object
		dropped bool // a pod of the name old, just now
		want    string
		again   time.Duration
		events  string
	}{
		"one of three":                   {budget: newBudget(), objects: three, want: "1/3/2/3"},
		"by selector":                    {budget: newBudget(bySelector), objects: three, want: "1/3/2/3"},
		"no more than there are":         {budget: newBudget(at(intstr.FromInt32(5))), objects: three, want: "3/3/0/3"},
		"none of three":                  {budget: newBudget(at(intstr.FromInt32(0))), objects: three, want: "0/3/3/3"},
		"a third, and a bit, rounded up": {budget: newBudget(at(percent("34%"))), objects: three, want: "2/3/1/3"},
		"a tenth is one":                 {budget: newBudget(at(percent("10%"))), objects: three, want: "1/3/2/3"},
		"two have to be":                 {budget: newBudget(least(intstr.FromInt32(2))), objects: three, want: "1/3/2/3"},
		"half have to be, rounded up":    {budget: newBudget(least(percent("50%"))), objects: three, want: "1/3/2/3"},
		"all have to be":                 {budget: newBudget(least(percent("100%"))), objects: three, want: "0/3/3/3"},
		"more than there are have to be": {budget: newBudget(least(intstr.FromInt32(9))), objects: three, want: "0/3/9/3"},
		"the budget sets the total":      {budget: newBudget(outOf(10), at(percent("20%"))), objects: three, want: "0/3/8/10"},
		"a v1alpha1 budget sets the total": {budget: newBudget(func(b *policy.PodUnavailableBudget) {
			b.Annotations = map[string]string{"pub.kruise.io/protect-total-replicas": "4"}
		}), objects: three, want: "0/3/3/4"},
		"one is not ready":                 {budget: newBudget(), objects: with(unready), want: "0/2/2/3"},
		"one is in an update":              {budget: newBudget(), objects: with(func(p *corev1.Pod) { p.Annotations["apps.kruise.io/inplace-update-grace"] = "{}" }), want: "0/2/2/3"},
		"one goes":                         {budget: newBudget(), objects: with(leaving), want: "0/2/2/3"},
		"one has ended":                    {budget: newBudget(), objects: with(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), want: "0/2/2/3"},
		"the workload wants none":          {budget: newBudget(), objects: []client.Object{stateful(0), pod("a")}, want: "0/0/0/0", events: "Normal NoPods No matching pods found"},
		"the workload is gone":             {budget: newBudget(), objects: []client.Object{pod("a")}, want: "0/0/0/0", events: "Normal NoPods No matching pods found"},
		"it is gone, and the total is set": {budget: newBudget(outOf(2)), objects: []client.Object{pod("a"), pod("b")}, want: "1/2/1/2"},
		"the workload goes": {budget: newBudget(), objects: []client.Object{func() client.Object {
			s := stateful(3)
			s.DeletionTimestamp, s.Finalizers = ptr.To(metav1.Now()), []string{"x/y"}
			return s
		}(), pod("a")}, want: "0/0/0/0", events: "Normal NoPods No matching pods found"},
		"by selector, and it goes": {budget: newBudget(bySelector), objects: []client.Object{func() client.Object {
			s := stateful(3)
			s.DeletionTimestamp, s.Finalizers = ptr.To(metav1.Now()), []string{"x/y"}
			return s
		}(), pod("a")}, want: "1/1/0/0"},
		"by selector, and nothing owns":   {budget: newBudget(bySelector), objects: []client.Object{pod("a", func(p *corev1.Pod) { p.OwnerReferences = nil })}, want: "1/1/0/0"},
		"by selector, owned by a Node":    {budget: newBudget(bySelector), objects: []client.Object{pod("a", ownedBy("v1", "Node", "n")), pod("b")}, want: "2/2/0/-1"},
		"two workloads":                   {budget: newBudget(bySelector), objects: []client.Object{stateful(3), pod("a"), cloneSet(4), pod("b", ownedBy("apps.kruise.io/v1alpha1", "CloneSet", "cs")), pod("c")}, want: "0/3/6/7"},
		"a Deployment":                    {budget: newBudget(of("Deployment", "d")), objects: []client.Object{deployment(2), replicaSet("r1"), replicaSet("r2"), pod("a", ownedBy("apps/v1", "ReplicaSet", "r1")), pod("b", ownedBy("apps/v1", "ReplicaSet", "r2")), pod("c")}, want: "1/2/1/2"},
		"a Deployment, by selector":       {budget: newBudget(bySelector), objects: []client.Object{deployment(2), replicaSet("r1"), replicaSet("r2"), pod("a", ownedBy("apps/v1", "ReplicaSet", "r1")), pod("b", ownedBy("apps/v1", "ReplicaSet", "r2"))}, want: "1/2/1/2"},
		"a ReplicaSet that is gone":       {budget: newBudget(bySelector), objects: []client.Object{pod("a", ownedBy("apps/v1", "ReplicaSet", "r1"))}, want: "1/1/0/0"},
		"a pod that was let go":           {budget: newBudget(disrupted("a", 5*time.Second)), objects: three, want: "0/2/2/3 disrupted:a", again: 15 * time.Second},
		"a pod that was to be updated":    {budget: newBudget(updated("a", 4*time.Second)), objects: three, want: "0/2/2/3 unavailable:a", again: 6 * time.Second},
		"a pod that goes":                 {budget: newBudget(disrupted("a", 5*time.Second)), objects: with(leaving), want: "0/2/2/3"},
		"a pod that the cache dropped":    {budget: newBudget(disrupted("old", 5*time.Second)), objects: three, dropped: true, want: "1/3/2/3"},
		"one that it may still show":      {budget: newBudget(disrupted("old", 5*time.Second)), objects: three, want: "1/3/2/3 disrupted:old", again: time.Second},
		"one that it would have shown":    {budget: newBudget(disrupted("old", 20*time.Second)), objects: three, want: "1/3/2/3"},
		"a pod that did not go":           {budget: newBudget(disrupted("a", 20*time.Second)), objects: three, want: "1/3/2/3", events: "Warning NotDeleted Pod was expected by PUB shop/web to be deleted but it wasn't"},
		"a pod that was not updated":      {budget: newBudget(updated("a", 10*time.Second)), objects: three, want: "1/3/2/3"},
		"a pod that is updated":           {budget: newBudget(updated("a", time.Second)), objects: with(unready), want: "0/2/2/3"},
		"a pod let go that is not ready":  {budget: newBudget(disrupted("a", time.Second)), objects: with(unready), want: "0/2/2/3 disrupted:a", again: 19 * time.Second},
		"a pod of the same name is new":   {budget: newBudget(disrupted("a", 9*time.Second)), objects: with(func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-5 * time.Second)) }), want: "1/3/2/3"},
		"perhaps it is":                   {budget: newBudget(disrupted("a", 9*time.Second)), objects: with(func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-8 * time.Second)) }), want: "0/2/2/3 disrupted:a", again: 11 * time.Second},
		"a pod that is not of the budget": {budget: newBudget(disrupted("old", time.Second)), objects: append([]client.Object{pod("old", func(p *corev1.Pod) { p.OwnerReferences = nil })}, three...), want: "1/3/2/3"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, nil, interceptor.Funcs{}, append([]client.Object{tc.budget}, tc.objects...)...)
			if tc.dropped {
				c.r.recordDrop(types.NamespacedName{Namespace: "shop", Name: "old"}, "old")
			}
			got, err := c.reconcile(t)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.summary(t)); diff != "" || got.RequeueAfter != tc.again {
				t.Errorf("again in %s, want %s\n%s", got.RequeueAfter, tc.again, diff)
			}
			if diff := cmp.Diff(tc.events, c.told()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"shop"}, c.covers); diff != "" {
				t.Error(diff)
			}
			if _, err := c.reconcile(t); err != nil || c.told() != "" || len(c.covers) != 1 {
				t.Errorf("once more: %v, %v", err, c.covers)
			}
		})
	}
}

func ownedBy(version, kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
	}
}

func of(kind, name string) func(*policy.PodUnavailableBudget) {
	return func(b *policy.PodUnavailableBudget) {
		b.Spec.TargetReference.Kind, b.Spec.TargetReference.Name = kind, name
	}
}

func cloneSet(replicas int32) *kruise.CloneSet {
	return &kruise.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cs", UID: "cs"}, Spec: kruise.CloneSetSpec{Replicas: &replicas}}
}

func deployment(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "d", UID: "d"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
}

func replicaSet(name string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "d", Controller: ptr.To(true)}},
	}}
}
