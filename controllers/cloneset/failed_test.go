// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
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
	has := func(t *testing.T, s *sim, want ...kruise.CloneSetConditionType) {
		t.Helper()
		got := s.set().Status.Conditions
		if len(got) != len(want) {
			t.Fatalf("the conditions are %+v, want %v", got, want)
		}
		for _, c := range want {
			if found := condition(&s.set().Status, c); found == nil || found.Status != corev1.ConditionTrue {
				t.Errorf("the conditions are %+v, want %v", got, want)
			}
		}
	}
	server, e := simServer(), simEngine(t)
	left := kruise.CloneSetCondition{ // as OpenKruise left it in a cluster
		Type: kruise.CloneSetConditionFailedUpdate, Status: corev1.ConditionTrue,
		Message: `Operation cannot be fulfilled on pods "cart-tpj2h": the object has been modified; please apply your changes to the latest version and try again`,
	}

	t.Run("left by OpenKruise", func(t *testing.T) {
		s := newSim(t, server, e, "left", gates{}, simSet(2, func(set *kruise.CloneSet) { set.Status.Conditions = []kruise.CloneSetCondition{left} }))
		s.reconcile() // it creates pods and updates none
		has(t, s, kruise.CloneSetConditionFailedUpdate)
		s.settle()
		has(t, s)
	})
	t.Run("of creating pods", func(t *testing.T) {
		s := newSim(t, server, e, "creating", gates{}, simSet(2, nil))
		s.deny = refused("create")
		s.reconcile()
		has(t, s, kruise.CloneSetConditionFailedScale)
		s.deny = nil
		s.settle()
		has(t, s)
	})
	t.Run("of updating pods", func(t *testing.T) {
		s := newSim(t, server, e, "updating", gates{}, simSet(2, nil))
		s.settle()
		s.deny = refused("patch")
		s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:2", "1") })
		s.reconcile()
		has(t, s, kruise.CloneSetConditionFailedUpdate)
		s.deny = func(o client.Object, verb string) error { // a race says nothing of what failed before
			if _, ok := o.(*corev1.Pod); ok && verb == "patch" {
				return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("another version"))
			}
			return nil
		}
		s.reconcile()
		has(t, s, kruise.CloneSetConditionFailedUpdate)
		s.deny = nil
		s.settle()
		has(t, s)
	})
}
