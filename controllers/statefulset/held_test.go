// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// pass lets a minute pass, in which no hook lets go of a pod and pods of an image never become ready.
func (s *life) pass(broken string) {
	s.Helper()
	for range 60 {
		for _, p := range s.ListPods() {
			if p.Spec.Containers[0].Image != broken || p.DeletionTimestamp != nil {
				s.StepPod(p.Name)
			}
		}
		s.ShowAll(nil)
		s.ReconcileIfDue()
		s.Now = s.Now.Add(time.Second)
	}
}

// pods are those that do not terminate, with their images.
func (s *life) pods() string {
	var out []string
	for _, p := range s.ListPods() {
		if p.DeletionTimestamp == nil {
			out = append(out, p.Name+"="+p.Spec.Containers[0].Image)
		}
	}
	return strings.Join(out, " ")
}

func hooked(set *kruise.StatefulSet) {
	set.Spec.Template.Labels = map[string]string{"app": "db", "hook": "on"}
	set.Spec.Lifecycle = &kruise.Lifecycle{PreDelete: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}}}
}

func TestACondemnedPodKeepsNoOther(t *testing.T) {
	e := testEngine(t)
	for name, tc := range map[string]struct {
		edit, change func(*kruise.StatefulSet)
		broken       string // image that never becomes ready
		want         string
	}{
		"which the hook holds, from being updated": {
			edit: hooked,
			change: func(set *kruise.StatefulSet) {
				set.Spec.Replicas = ptr.To[int32](2)
				set.Spec.Template.Spec.Containers[0].Image = "db:2"
				set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.InPlaceIfPossiblePodUpdatePolicyType
			},
			want: "db-0=db:2 db-1=db:2 db-2=db:1",
		},
		"which is not ready, from going when they are OrderedReady": {
			edit:   func(set *kruise.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement },
			change: func(set *kruise.StatefulSet) { set.Spec.Replicas = ptr.To[int32](0) }, broken: "db:1", want: "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLife(t, e, testSet(3, tc.edit))
			s.RunUntilStable()
			if tc.broken != "" {
				for _, p := range s.ListPods() {
					s.SetReady(p, false)
				}
			}
			s.change(tc.change)
			s.pass(tc.broken)
			if got := s.pods(); got != tc.want {
				t.Errorf("there are %q, want %q%s", got, tc.want, s.DescribeState())
			}
		})
	}
}

func TestAPodThatHasEndedGoesByItsHook(t *testing.T) {
	s := newLife(t, testEngine(t), testSet(2, hooked))
	s.RunUntilStable()
	s.FailPod(s.FindPod("db-1"))
	s.pass("")
	p := s.FindPod("db-1")
	if p == nil || p.DeletionTimestamp != nil || p.Labels[kruise.LifecycleStateKey] != string(kruise.LifecycleStatePreparingDelete) {
		t.Fatalf("got %v, want a pod that its hook holds%s", p, s.DescribeState())
	}
	failed := p.UID
	p = p.DeepCopy()
	delete(p.Labels, "hook")
	s.Update(p)
	s.pass("")
	if p := s.FindPod("db-1"); p == nil || p.UID == failed || p.Status.Phase != corev1.PodRunning {
		t.Errorf("got %v, want another pod%s", p, s.DescribeState())
	}
}

// A pod whose hook has let it go goes back to its services while the update is held, also by a rule that fails for a minute.
func TestAHoldTakesAPodBackThatPreparedItsUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		condition string
		fails     bool
	}{
		"a freeze":          {"input.update != 0", false},
		"a rule that fails": {"to_number(input.workload.name) > 1", true},
	} {
		t.Run(name, func(t *testing.T) {
			e := testEngine(t)
			set := testSet(1, nil)
			set.Spec.Template.Labels = map[string]string{"app": "db", "hook": "on"}
			set.Spec.Lifecycle = &kruise.Lifecycle{InPlaceUpdate: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}, MarkPodNotReady: true}}
			set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateStatefulSetStrategy{PodUpdatePolicy: kruise.InPlaceIfPossiblePodUpdatePolicyType}
			s := newLife(t, e, set)
			s.RunUntilStable()
			s.change(func(set *kruise.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "db:2" })
			state := func() string { return s.ListPods()[0].Labels[kruise.LifecycleStateKey] }
			for range 8 { // the hook does not let go
				s.StepPod(s.ListPods()[0].Name)
				s.ShowAll(nil)
				s.ReconcileIfDue()
			}
			if state() != string(kruise.LifecycleStatePreparingUpdate) {
				t.Fatalf("the pod is in state %q%s", state(), s.DescribeState())
			}
			b, err := bundle.FromFiles("hold", map[string]string{"hold.rego": "package extend.rollout.hold\n\nhold contains {\"rule\": \"hold\", \"reason\": \"Held\", \"message\": \"held\"} if " + tc.condition + "\n"})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
				t.Fatal(err)
			}
			s.RunUntilStable()
			if tc.fails {
				s.Now = s.Now.Add(2 * time.Minute)
				s.RunUntilStable()
			}
			p := s.ListPods()[0]
			if p.Spec.Containers[0].Image != "db:1" || state() != string(kruise.LifecycleStateNormal) {
				t.Errorf("image %s in state %q; want db:1 and Normal%s", p.Spec.Containers[0].Image, state(), s.DescribeState())
			}
		})
	}
}
