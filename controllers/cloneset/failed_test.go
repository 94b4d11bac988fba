// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/test/rules"
)

// A condition of a failure is removed by the first round in which the same phase does
// not fail, whether it is ours or was left by OpenKruise.
func TestAFailureIsReportedWhileItLasts(t *testing.T) {
	refused := func(what string) func(client.Object, string) error {
		return func(o client.Object, verb string) error {
			if _, ok := o.(*corev1.Pod); ok && verb == what {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("exceeded quota"))
			}
			return nil
		}
	}
	has := func(t *testing.T, s *life, want ...kruise.CloneSetConditionType) {
		t.Helper()
		status := s.set().Status
		kstatus.RemoveConditions(&status)
		got := status.Conditions
		if len(got) != len(want) {
			t.Fatalf("the conditions are %+v, want %v", got, want)
		}
		for _, c := range want {
			if found := findCondition(&s.set().Status, c); found == nil || found.Status != corev1.ConditionTrue {
				t.Errorf("the conditions are %+v, want %v", got, want)
			}
		}
	}
	e := rules.Engine(t, "")
	left := kruise.CloneSetCondition{ // as OpenKruise left it in a cluster
		Type: kruise.CloneSetConditionFailedUpdate, Status: corev1.ConditionTrue,
		Message: `Operation cannot be fulfilled on pods "cart-tpj2h": the object has been modified; please apply your changes to the latest version and try again`,
	}

	t.Run("left by OpenKruise", func(t *testing.T) {
		s := newLife(t, e, gates{}, simSet(2, func(set *kruise.CloneSet) { set.Status.Conditions = []kruise.CloneSetCondition{left} }))
		s.RunUntilStable()
		has(t, s)
	})
	t.Run("of creating pods", func(t *testing.T) {
		s := newLife(t, e, gates{}, simSet(2, nil))
		s.Deny = refused("create")
		s.Reconcile()
		has(t, s, kruise.CloneSetConditionFailedScale)
		s.Deny = nil
		s.RunUntilStable()
		has(t, s)
	})
	t.Run("of updating pods", func(t *testing.T) {
		s := newLife(t, e, gates{}, simSet(2, nil))
		s.RunUntilStable()
		s.Deny = refused("patch")
		s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:2", "1") })
		s.Reconcile()
		has(t, s, kruise.CloneSetConditionFailedUpdate)
		s.Deny = func(o client.Object, verb string) error { // a race says nothing of what failed before
			if _, ok := o.(*corev1.Pod); ok && verb == "patch" {
				return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("another version"))
			}
			return nil
		}
		s.Reconcile()
		has(t, s, kruise.CloneSetConditionFailedUpdate)
		s.Deny = nil
		s.RunUntilStable()
		has(t, s)
	})
}

// A round that replaces a pod that is missing updates others too, as far as maxUnavailable
// allows with the missing one.
func TestARoundUpdatesWhileItCreates(t *testing.T) {
	e := rules.Engine(t, "")
	for most, moved := range map[int32]int{1: 0, 2: 1, 3: 2} {
		s := newLife(t, e, gates{}, simSet(4, func(set *kruise.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(most))
		}))
		s.RunUntilStable()
		lost := s.ListPods()[0]
		s.Delete(lost)
		for len(s.ListPods()) == 4 {
			s.StepPod(lost.Name)
		}
		s.change(func(set *kruise.CloneSet) {
			set.Spec.Template = simTemplate("web:1", "2") // which recreates
		})
		s.ShowAll(nil)
		s.Reconcile()
		created, deleted := 0, 0
		for _, p := range s.ListPods() {
			switch {
			case p.DeletionTimestamp != nil:
				deleted++
			case p.Spec.Containers[0].Env[0].Value == "2":
				created++
			}
		}
		if created != 1 || deleted != moved {
			t.Errorf("with a maxUnavailable of %d a round created %d and deleted %d, want 1 and %d", most, created, deleted, moved)
		}
	}
}
