// SPDX-License-Identifier: Apache-2.0

package sidecarset

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
	"github.com/regatta-sh/regatta/controllers/sidecarset/matching"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/sidecars"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/faultinjection"
	"github.com/regatta-sh/regatta/test/rules"
)

// newFaultScenario is a SidecarSet with two pods, whose image a user changes once they are ready.
func newFaultScenario(t *testing.T, set *kruise.SidecarSet) faultinjection.Scenario {
	t.Helper()
	e := rules.Engine(t, "")
	return faultinjection.Scenario{
		Objects: append(webs(t, 2, set), set, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{corev1.LabelMetadataName: "shop"}}}),
		Build: func(b *fake.ClientBuilder) {
			b.WithIndex(&corev1.Pod{}, InjectedIndex, InjectedIn).WithIndex(&corev1.Pod{}, matching.LabelsIndex, matching.IndexLabels).
				WithIndex(&kruise.SidecarSet{}, matching.KeysIndex, matching.IndexKeys).WithIndex(&appsv1.ControllerRevision{}, rollout.OwnerIndex, rollout.OwnerUID)
		},
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			judge := sidecars.NewJudge(sidecars.Options{Cached: env.Client, Live: env.Client, Engine: e, Namespace: "kruise-system"})
			missed := &MissedPodFinder{Given: judge.DecideSidecars, Live: env.Client, Count: func(string, map[string]int) {}, Sent: func(string, map[string]string) bool { return true }}
			return rollout.New(New(env.Client, "kruise-system", env.Events, WithMissed(missed)), reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock},
				rollout.WithWindow(inflight.NewFixed(1)), rollout.WithParallelWrites(1))
		},
		Requests: faultinjection.RequestFor(set),
		Watches:  map[string]faultinjection.Changes{"SidecarSet": faultinjection.ChangesOfSpec, "ControllerRevision": faultinjection.NoChanges},
		Others: func(c *faultinjection.Cluster) {
			if faultinjection.RunPods(c) < 2 {
				return
			}
			found := &kruise.SidecarSet{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(set), found))
			if found.Generation == 1 && found.Status.ReadyPods == 2 {
				found.Generation = 2
				found.Spec.Containers[0].Image = "logs:2"
				c.Must(c.Client.Update(c.Context(), found))
			}
		},
		Random: regexp.MustCompile(`"10\d\d"`), // the version of the SidecarSet that a hot upgrade is of
		Delay:  6 * time.Minute,
	}
}

func TestNoFailedCallLeavesASidecarBehind(t *testing.T) {
	t.Run("cold", func(t *testing.T) { newFaultScenario(t, logs(nil)).Run(t) })
	t.Run("hot", func(t *testing.T) { newFaultScenario(t, hotLogs()).Run(t) })
	t.Run("that a pod lacks", func(t *testing.T) {
		s := newFaultScenario(t, logs(func(set *kruise.SidecarSet) {
			set.Annotations = map[string]string{kruise.SidecarSetRecreateMissedKey: "true"}
		}))
		lacking := webs(t, 3)[2]
		lacking.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: ptr.To(true)}})
		s.Objects = append(s.Objects, lacking)
		s.Delay = 11 * time.Minute // the condition of a generation that a user has not changed meanwhile goes after ten
		s.Run(t)
	})
}

func TestASidecarSetSaysThatItsPodsCannotBeUpdated(t *testing.T) {
	newFaultScenario(t, logs(nil)).RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Kind == "Pod" },
		Says:   "an admission webhook refuses it",
		Reaches: func(c *faultinjection.Cluster) string {
			list := &corev1.PodList{}
			c.Must(c.Client.List(c.Context(), list))
			for i := range list.Items {
				for _, container := range list.Items[i].Spec.Containers {
					if container.Image == "logs:1" {
						return "pod " + list.Items[i].Name + " has the old image"
					}
				}
			}
			return ""
		},
	})
}
