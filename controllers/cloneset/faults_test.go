// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"regexp"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/faultinjection"
	"github.com/regatta-sh/regatta/test/rules"
)

// newFaultScenario is a CloneSet of two pods with a claim each, whose image a user changes once they are ready.
func newFaultScenario(t *testing.T, how kruise.PodUpdatePolicyType) faultinjection.Scenario {
	t.Helper()
	e := rules.Engine(t, "")
	labels := map[string]string{"app": "web"}
	set := &kruise.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set", Generation: 1}}
	set.Spec.Replicas = ptr.To[int32](2)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.UpdateStrategy = kruise.CloneSetUpdateStrategy{Type: kruise.RollingUpdateCloneSetUpdateStrategyType, RollingUpdate: &kruise.RollingUpdateCloneSetStrategy{PodUpdatePolicy: how}}
	set.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "web:1"}}, ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}},
	}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	return faultinjection.Scenario{
		Objects: []client.Object{set},
		Build: func(b *fake.ClientBuilder) {
			for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}} {
				b.WithIndex(o, rollout.OwnerIndex, rollout.OwnerUID)
			}
		},
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return rollout.New(New(Gates{}, false), reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock},
				rollout.WithWindow(inflight.NewFixed(1)), rollout.WithParallelWrites(1))
		},
		Requests: faultinjection.RequestFor(set),
		Watches:  map[string]faultinjection.Changes{"CloneSet": faultinjection.ChangesOfSpec, "ControllerRevision": faultinjection.NoChanges, "PersistentVolumeClaim": faultinjection.NoChanges},
		Others: func(c *faultinjection.Cluster) {
			if faultinjection.RunPods(c, kruise.InPlaceUpdateReady) < 2 {
				return
			}
			found := &kruise.CloneSet{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(set), found))
			if found.Generation == 1 {
				found.Generation = 2
				found.Spec.Template.Spec.Containers[0].Image = "web:2"
				c.Must(c.Client.Update(c.Context(), found))
			}
		},
		Random: regexp.MustCompile(`\b(data-web|web)-[a-z0-9]{5}\b|"apps.kruise.io/cloneset-instance-id": "[a-z0-9]{5}"`),
		Delay:  6 * time.Minute,
	}
}

func TestNoFailedCallLeavesAPodOfACloneSetBehind(t *testing.T) {
	t.Run("recreated", func(t *testing.T) { newFaultScenario(t, kruise.RecreatePodUpdatePolicyType).Run(t) })
	t.Run("in place", func(t *testing.T) { newFaultScenario(t, kruise.InPlaceIfPossiblePodUpdatePolicyType).Run(t) })
}

func TestACloneSetSaysThatAQuotaRefusesItsPods(t *testing.T) {
	newFaultScenario(t, kruise.RecreatePodUpdatePolicyType).RunWait(t, faultinjection.RefuseCreates("Pod", faultinjection.WantPods(2)))
}
