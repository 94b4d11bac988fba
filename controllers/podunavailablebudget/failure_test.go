// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
)

// The status reports what the controller cannot work out. What the budget allows stays as it was.
func TestABudgetThatCannotBeWorkedOutSaysSo(t *testing.T) {
	broken := true
	c := newCluster(t, nil, interceptor.Funcs{List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, pods := list.(*corev1.PodList); pods && broken {
			return errors.New("no answer")
		}
		return api.List(ctx, list, opts...)
	}}, stateful(2), newBudget(func(b *policy.PodUnavailableBudget) { b.Status.ObservedGeneration, b.Status.UnavailableAllowed = 7, 1 }))
	status := func() policy.PodUnavailableBudgetStatus {
		b := &policy.PodUnavailableBudget{}
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, b); err != nil {
			t.Fatal(err)
		}
		return b.Status
	}
	if _, err := c.reconcile(t); err == nil {
		t.Fatal("it could be worked out")
	}
	s := status()
	if told := meta.FindStatusCondition(s.Conditions, failure.ConditionType); told == nil || !strings.Contains(told.Message, "listing pods: no answer") || s.UnavailableAllowed != 1 {
		t.Errorf("the status is %+v", s)
	}
	broken = false
	if _, err := c.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if s := status(); meta.FindStatusCondition(s.Conditions, failure.ConditionType) != nil {
		t.Errorf("at the end the status is %+v", s)
	}
}
