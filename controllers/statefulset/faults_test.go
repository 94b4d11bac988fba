// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// newFaultScenario is a StatefulSet of two pods with a claim each, whose image a user changes once they are ready.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	e := testEngine(t)
	set := testSet(2, func(set *kruise.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	})
	return faultinjection.Scenario{
		Objects: []client.Object{set},
		Build: func(b *fake.ClientBuilder) {
			for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}} {
				b.WithIndex(o, rollout.OwnerIndex, rollout.OwnerUID)
			}
		},
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return rollout.New(New(Gates{}), reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock},
				rollout.WithWindow(inflight.NewFixed(1)), rollout.WithParallelWrites(1))
		},
		Requests: faultinjection.RequestFor(set),
		Watches:  map[string]faultinjection.Changes{"StatefulSet": faultinjection.ChangesOfSpec, "ControllerRevision": faultinjection.NoChanges, "PersistentVolumeClaim": faultinjection.NoChanges},
		Others: func(c *faultinjection.Cluster) {
			if faultinjection.RunPods(c, kruise.InPlaceUpdateReady) < 2 {
				return
			}
			found := &kruise.StatefulSet{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(set), found))
			if found.Generation == 1 {
				found.Generation = 2
				found.Spec.Template.Spec.Containers[0].Image = "db:2"
				c.Must(c.Client.Update(c.Context(), found))
			}
		},
		Delay: 6 * time.Minute,
	}
}

func TestNoFailedCallLeavesAPodOfAStatefulSetBehind(t *testing.T) {
	newFaultScenario(t).Run(t)
}

func TestAStatefulSetSaysThatAQuotaRefusesItsPods(t *testing.T) {
	newFaultScenario(t).RunWait(t, faultinjection.RefuseCreates("Pod", faultinjection.WantPods(2)))
}
