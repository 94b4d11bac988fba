// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

func TestNoFailedCallLeavesABudgetWithAnOldStatus(t *testing.T) {
	for name, edits := range map[string][]func(*policy.PodUnavailableBudget){
		"of a workload": nil,
		"of a selector": {bySelector},
		"with records":  {disrupted("web-0", 1e9), updated("web-1", 3600e9)},
	} {
		t.Run(name, func(t *testing.T) {
			budget := newBudget(edits...)
			unmarked := pod("web-1")
			unmarked.Annotations = nil
			objects := []client.Object{budget, stateful(3), pod("web-0"), unmarked, pod("web-2", unready)}
			faultinjection.Scenario{
				Objects: objects,
				Build:   func(b *fake.ClientBuilder) { b.WithIndex(&corev1.Pod{}, rollout.OwnerIndex, rollout.OwnerUID) },
				New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
					return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Now: env.Clock}, NewFinder(env.Client, scale.NewFinder(env.Client, nil)))
				},
				Requests: faultinjection.RequestFor(budget),
				Watches:  map[string]faultinjection.Changes{"PodUnavailableBudget": faultinjection.ChangesOfSpec},
			}.Run(t)
		})
	}
}

func TestABudgetTellsThatItsPodsCannotBeMarked(t *testing.T) {
	budget, unmarked := newBudget(), pod("web-1")
	unmarked.Annotations = nil
	faultinjection.Scenario{
		Objects: []client.Object{budget, stateful(2), pod("web-0"), unmarked},
		Build:   func(b *fake.ClientBuilder) { b.WithIndex(&corev1.Pod{}, rollout.OwnerIndex, rollout.OwnerUID) },
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Now: env.Clock}, NewFinder(env.Client, scale.NewFinder(env.Client, nil)))
		},
		Requests: faultinjection.RequestFor(budget),
		Watches:  map[string]faultinjection.Changes{"PodUnavailableBudget": faultinjection.ChangesOfSpec},
	}.RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Kind == "Pod" },
		Tells:  "an admission webhook refuses it",
		Reaches: func(c *faultinjection.Cluster) string {
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(unmarked), unmarked))
			if len(unmarked.Annotations) == 0 {
				return "the pod is not marked"
			}
			return ""
		},
	})
}
