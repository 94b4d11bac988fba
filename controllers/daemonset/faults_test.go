// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"regexp"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// newFaultScenario is a DaemonSet on two nodes, whose image a user changes once its pods are ready.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	e := testEngine(t)
	set := testSet(maxUnavailable(1))
	return faultinjection.Scenario{
		Objects: []client.Object{set, testNode("a"), testNode("b")},
		Build: func(b *fake.ClientBuilder) {
			for _, o := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}} {
				b.WithIndex(o, rollout.OwnerIndex, rollout.OwnerUID)
			}
		},
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return rollout.New(standard(), reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock},
				rollout.WithWindow(inflight.NewFixed(1)), rollout.WithParallelWrites(1))
		},
		Requests: faultinjection.RequestFor(set),
		Watches:  map[string]faultinjection.Changes{"DaemonSet": faultinjection.ChangesOfSpec, "ControllerRevision": faultinjection.NoChanges, "Node": faultinjection.NoChanges},
		Others: func(c *faultinjection.Cluster) {
			if faultinjection.RunPods(c) < 2 {
				return
			}
			found := &kruise.DaemonSet{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(set), found))
			if found.Generation == 1 {
				found.Generation = 2
				image("2")(found)
				c.Must(c.Client.Update(c.Context(), found))
			}
		},
		Random: regexp.MustCompile(`\blog-[a-z0-9]{5}\b`),
		Delay:  6 * time.Minute,
	}
}

func TestNoFailedCallLeavesANodeWithoutItsDaemon(t *testing.T) {
	newFaultScenario(t).Run(t)
}

func TestADaemonSetSaysThatAQuotaRefusesItsPods(t *testing.T) {
	newFaultScenario(t).RunWait(t, faultinjection.RefuseCreates("Pod", faultinjection.WantPods(2)))
}
