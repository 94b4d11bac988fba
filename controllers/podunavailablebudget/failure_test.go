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
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/test/waiting"
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
	status := func(want status.Status) policy.PodUnavailableBudgetStatus {
		t.Helper()
		b := &policy.PodUnavailableBudget{}
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, b); err != nil {
			t.Fatal(err)
		}
		if got, message := waiting.JudgeObject(t, policy.GroupVersion.WithKind("PodUnavailableBudget"), b); got != want {
			t.Errorf("kstatus says %s (%s), want %s", got, message, want)
		}
		return b.Status
	}
	if _, err := c.reconcile(t); err == nil {
		t.Fatal("it could be worked out")
	}
	s := status(waiting.InProgress)
	if told := meta.FindStatusCondition(s.Conditions, failure.ConditionType); told == nil || !strings.Contains(told.Message, "listing pods: no answer") || s.UnavailableAllowed != 1 {
		t.Errorf("the status is %+v", s)
	}
	broken = false
	if _, err := c.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if s := status(waiting.Current); meta.FindStatusCondition(s.Conditions, failure.ConditionType) != nil {
		t.Errorf("at the end the status is %+v", s)
	}
}

// A budget that lets no more pods be unavailable protects them, so it is current, as a PodDisruptionBudget is.
func TestWhatKstatusSaysOfAPodUnavailableBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		budget  *policy.PodUnavailableBudget
		pods    []client.Object
		summary string
	}{
		"it protects pods": {newBudget(), []client.Object{stateful(2), pod("a"), pod("b")}, "1/2/1/2"},
		"it is used up":    {newBudget(), []client.Object{stateful(2), pod("a"), pod("b", unready)}, "0/1/1/2"},
		"it has no pods":   {newBudget(), []client.Object{stateful(0)}, "0/0/0/0"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, nil, interceptor.Funcs{}, append(tc.pods, tc.budget)...)
			b := &policy.PodUnavailableBudget{}
			for range 2 { // a round without news writes nothing
				if _, err := c.reconcile(t); err != nil {
					t.Fatal(err)
				}
				was := b.ResourceVersion
				if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, b); err != nil {
					t.Fatal(err)
				}
				if was != "" && was != b.ResourceVersion {
					t.Error("the second round writes the status too")
				}
			}
			if got := c.summary(t); got != tc.summary {
				t.Errorf("the counts are %s, want %s", got, tc.summary)
			}
			if got, message := waiting.JudgeObject(t, policy.GroupVersion.WithKind("PodUnavailableBudget"), b); got != waiting.Current || len(b.Status.Conditions) != 1 {
				t.Errorf("kstatus says %s (%s), and the conditions are %+v", got, message, b.Status.Conditions)
			}
		})
	}
}
