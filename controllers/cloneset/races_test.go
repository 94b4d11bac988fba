// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/rules"
)

// A webhook that answers 409 to each write is not a race: after a few rounds, each
// after a longer time, it is reported as the failure that it is.
func TestConflictsThatDoNotEndAreFailures(t *testing.T) {
	s := newLife(t, rules.Engine(t, ""), gates{}, simSet(2, nil))
	s.RunUntilStable()
	s.Deny = func(o client.Object, verb string) error {
		if _, ok := o.(*corev1.Pod); ok && verb == "patch" {
			return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("admission webhook says so"))
		}
		return nil
	}
	s.change(func(set *kruise.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "web:2" })
	var delays []time.Duration
	for range 8 {
		if s.IsDue() || !s.Timer.IsZero() {
			s.Reconcile()
			delays = append(delays, s.Timer.Sub(s.Now))
			s.Now = s.Timer
			s.ShowAll(nil)
		}
	}
	for i := range 5 {
		if want := 50 * time.Millisecond << i; delays[i] != want {
			t.Errorf("round %d is repeated after %s, want %s: %v", i+1, delays[i], want, delays)
		}
	}
	failed := findCondition(&s.set().Status, kruise.CloneSetConditionFailedUpdate)
	if failed == nil || failed.Status != corev1.ConditionTrue || !strings.Contains(failed.Message, "webhook says so") {
		t.Errorf("the condition is %+v", failed)
	}
	if !s.HasEvent("Warning FailedUpdate") {
		t.Error("no event tells that the update fails")
	}
}

// The same of the status alone: there is no loop without back-off.
func TestAStatusThatAlwaysConflictsIsAFailure(t *testing.T) {
	s := newLife(t, rules.Engine(t, ""), gates{}, simSet(1, nil))
	s.RunUntilStable()
	s.Deny = func(o client.Object, verb string) error {
		if _, ok := o.(*kruise.CloneSet); ok {
			return apierrors.NewConflict(schema.GroupResource{Resource: "clonesets"}, o.GetName(), errors.New("admission webhook says so"))
		}
		return nil
	}
	s.change(func(set *kruise.CloneSet) { set.Spec.MinReadySeconds = 1 })
	for range 6 {
		s.Reconcile()
		s.Now = s.Timer
	}
	if s.Failures == 0 {
		t.Error("six conflicts in a row are no failure")
	}
}

// A quota that has no room for another pod keeps none of the others from being updated,
// as far as maxUnavailable has room beside those that are missing.
func TestUpdatesGoOnWhileCreationFails(t *testing.T) {
	s := newLife(t, rules.Engine(t, ""), gates{}, simSet(4, nil))
	s.RunUntilStable()
	s.Deny = func(o client.Object, verb string) error {
		if _, ok := o.(*corev1.Pod); ok && verb == "create" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("exceeded quota"))
		}
		return nil
	}
	s.change(func(set *kruise.CloneSet) {
		set.Spec.Replicas = ptr.To[int32](5)
		set.Spec.Template.Spec.Containers[0].Image = "web:2"
	})
	for range 30 {
		for _, p := range s.ListPods() {
			s.StepPod(p.Name)
		}
		s.ShowAll(nil)
		s.ReconcileIfDue()
		s.Now = s.Now.Add(time.Second)
	}
	if got := s.CountPods(); got.Updated != 4 {
		t.Errorf("%d of 4 pods are updated while the fifth cannot be created", got.Updated)
	}
	if failed := findCondition(&s.set().Status, kruise.CloneSetConditionFailedScale); failed == nil || failed.Status != corev1.ConditionTrue {
		t.Errorf("the condition FailedScale is %+v", failed)
	}
}

// A pod that becomes unready and ready again while the cache shows the status of
// before: what is written last is what holds.
func TestAStatusThatTheCacheDoesNotShowYetIsCorrected(t *testing.T) {
	s := newLife(t, rules.Engine(t, ""), gates{}, simSet(2, nil))
	s.RunUntilStable()
	flap := func(ready bool) {
		s.SetReady(s.ListPods()[0], ready)
		s.ShowAll(&corev1.Pod{})
		s.Reconcile()
	}
	flap(false)
	if n := s.set().Status.ReadyReplicas; n != 1 {
		t.Fatalf("%d pods are ready by the status", n)
	}
	flap(true)
	if n := s.set().Status.ReadyReplicas; n != 2 {
		t.Errorf("2 pods are ready, and the status says %d", n)
	}
}

// The pod was made not ready for an update whose state could not be written, and the user
// goes back: it returns to its services.
func TestAPodThatNeverBeganToPrepareReturnsToItsServices(t *testing.T) {
	hook := &kruise.LifecycleHook{LabelsHandler: map[string]string{simHook: "on"}, MarkPodNotReady: true}
	s := newLife(t, rules.Engine(t, ""), gates{}, simSet(2, func(set *kruise.CloneSet) {
		set.Spec.Lifecycle = &kruise.Lifecycle{InPlaceUpdate: hook}
	}))
	s.RunUntilStable()
	s.Deny = func(o client.Object, verb string) error {
		if _, ok := o.(*corev1.Pod); ok && verb == "patch" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("not now"))
		}
		return nil
	}
	s.change(func(set *kruise.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "web:2" })
	s.Reconcile()
	s.ShowAll(nil)
	if got := s.CountPods(); got.Active != 2 {
		t.Fatalf("there are %+v", got)
	}
	s.Deny = nil
	s.change(func(set *kruise.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "web:1" })
	s.RunUntilStable()
	s.finished()
}
