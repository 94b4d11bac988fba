// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// podUIDs has the UIDs of the pods that the set controls, by name.
func (s *life) podUIDs() map[string]types.UID {
	out := map[string]types.UID{}
	for _, p := range s.ListPods() {
		if metav1.IsControlledBy(p, s.CurrentWorkload()) {
			out[p.Name] = p.UID
		}
	}
	return out
}

func TestAdoptsWhatASetOfItsNameLeft(t *testing.T) {
	for name, shown := range map[string]client.Object{"with a cache that is up to date": nil, "with a cache that lags behind": &corev1.Pod{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLife(t, testEngine(t), testSet(3, nil))
			s.RunUntilStable()
			before := s.podUIDs()
			s.OrphanDependents()
			s.ShowAll(shown) // of pods alone: a revision of the name is met when it is created
			s.Reconcile()
			s.RunUntilStable()
			after := s.podUIDs()
			for _, pod := range []string{"db-0", "db-1", "db-2"} {
				if after[pod] == "" || after[pod] != before[pod] {
					t.Errorf("the set controls %s as %q, want %q%s", pod, after[pod], before[pod], s.DescribeState())
				}
			}
			revisions := simulation.ListObjects[*appsv1.ControllerRevision](s.Harness)
			if len(revisions) != 1 || !metav1.IsControlledBy(revisions[0], s.CurrentWorkload()) {
				t.Errorf("got revisions %v, want the one there was, of the new set%s", revisions, s.DescribeState())
			}
			if got := s.set().Status; got.UpdatedReplicas != 3 || got.ReadyReplicas != 3 || len(got.Conditions) != 1 || got.Conditions[0].Type != kruise.ConditionReady {
				t.Errorf("got status %+v, want 3 updated and ready replicas", got)
			}
		})
	}
}

func TestAdoptsAPodThatIsLabelledBack(t *testing.T) {
	s := newLife(t, testEngine(t), testSet(2, nil))
	s.RunUntilStable()
	before := s.podUIDs()
	pod := s.FindPod("db-1").DeepCopy()
	delete(pod.Labels, "app")
	s.Update(pod)
	s.ShowAll(nil)
	s.ReconcileIfDue()
	s.ShowAll(nil)
	if got := s.podUIDs(); len(got) != 1 {
		t.Errorf("the set controls %v, want db-0 alone", got)
	}
	pod = s.FindPod("db-1").DeepCopy()
	pod.Labels["app"] = "db"
	s.Update(pod)
	s.RunUntilStable()
	if got := s.podUIDs(); got["db-1"] != before["db-1"] {
		t.Errorf("the set controls %v, want %v%s", got, before, s.DescribeState())
	}
}

func TestReleasesAPodThatHasEnded(t *testing.T) {
	s := newLife(t, testEngine(t), testSet(1, nil))
	s.RunUntilStable()
	pod := s.FindPod("db-0").DeepCopy()
	delete(pod.Labels, "app")
	s.Update(pod)
	s.FailPod(s.FindPod("db-0"))
	s.ShowAll(nil)
	s.ReconcileIfDue()
	if p := s.FindPod("db-0"); p == nil || p.DeletionTimestamp != nil || metav1.IsControlledBy(p, s.CurrentWorkload()) {
		t.Errorf("got pod %v, want the one that a user took out of the set to look at%s", p, s.DescribeState())
	}
}

func TestAdoptsOnly(t *testing.T) {
	pod := func(name string, edit func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID(name), Labels: map[string]string{"app": "db"}}}
		edit(p)
		return p
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		live func(*kruise.StatefulSet) // what the API server has of the set that the cache shows
		want bool
	}{
		"a pod of the set's":            {pod: pod("db-0", func(*corev1.Pod) {}), want: true},
		"a pod beyond the last ordinal": {pod: pod("db-7", func(*corev1.Pod) {}), want: true},
		"no pod of another name":        {pod: pod("other-0", func(*corev1.Pod) {})},
		"no pod of another label":       {pod: pod("db-0", func(p *corev1.Pod) { p.Labels["app"] = "web" })},
		"no pod of another namespace":   {pod: pod("db-0", func(p *corev1.Pod) { p.Namespace = "bank" })},
		"no pod of another controller": {pod: pod("db-0", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j", UID: "j", Controller: new(bool)}}
			*p.OwnerReferences[0].Controller = true
		})},
		"no pod that terminates":         {pod: pod("db-0", func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = &metav1.Time{}, []string{"x/y"} })},
		"nothing of a set that is gone":  {pod: pod("db-0", func(*corev1.Pod) {}), live: func(set *kruise.StatefulSet) { set.UID = "another" }},
		"nothing of a set that is going": {pod: pod("db-0", func(*corev1.Pod) {}), live: func(set *kruise.StatefulSet) { set.DeletionTimestamp = &metav1.Time{} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := testSet(1, func(set *kruise.StatefulSet) { // an adopted pod stays as it is
				set.Spec.UpdateStrategy = kruise.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
			})
			w := newWorld(t, testEngine(t), Gates{}, set, tc.pod)
			live := interceptor.NewClient(w.c.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, o, opts...)
					if set, ok := o.(*kruise.StatefulSet); ok && tc.live != nil {
						tc.live(set)
					}
					return err
				},
			})
			r := rollout.New(New(Gates{}), reconcile.Deps{Client: w.c, Live: live, Events: w.events, Engine: testEngine(t)})
			_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)})
			if tc.live != nil && err == nil {
				t.Errorf("got no error, so nobody tries again")
			}
			got := &corev1.Pod{}
			if err := w.c.Get(t.Context(), client.ObjectKeyFromObject(tc.pod), got); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if controlled := metav1.IsControlledBy(got, set) && got.UID == tc.pod.UID; controlled != tc.want {
				t.Errorf("controlled: %v, want %v", controlled, tc.want)
			}
		})
	}
}
