// SPDX-License-Identifier: Apache-2.0

package imagelistpulljob

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// newFaultScenario is a list of two images whose jobs end at once, and a job of an image that it does not have any more.
func newFaultScenario() faultinjection.Scenario {
	list := &kruise.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "warm", UID: "l"}}
	list.Spec.Images = []string{"nginx:1", "redis:7"}
	list.Spec.CompletionPolicy = kruise.CompletionPolicy{Type: kruise.AlwaysCompletionPolicyType, TTLSecondsAfterFinished: ptr.To[int32](300)}
	extra := jobOf(list, "mysql:8", "h")
	extra.Name, extra.GenerateName = "warm-extra", ""
	return faultinjection.Scenario{
		Objects: []client.Object{list, extra},
		New: func(_ testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: e.Client, Live: e.Client, Events: e.Events, Now: e.Clock})
		},
		Requests: faultinjection.RequestFor(list),
		Watches:  map[string]faultinjection.Changes{"ImageListPullJob": faultinjection.ChangesOfSpec},
		Others: func(c *faultinjection.Cluster) {
			jobs := &kruise.ImagePullJobList{}
			c.Must(c.Client.List(c.Context(), jobs))
			for i := range jobs.Items {
				job := &jobs.Items[i]
				before := job.DeepCopy()
				if job.Status.StartTime == nil {
					job.Status.StartTime = ptr.To(metav1.NewTime(c.Now))
				}
				job.Status.Desired, job.Status.Succeeded = 1, 1
				c.PatchStatus(job, before)
			}
		},
	}
}

func TestNoFailedCallLeavesAnImageListPullJobUnfinished(t *testing.T) {
	t.Run("with a TTL", func(t *testing.T) { newFaultScenario().Run(t) })
	t.Run("without", func(t *testing.T) {
		s := newFaultScenario()
		s.Objects[0].(*kruise.ImageListPullJob).Spec.CompletionPolicy.TTLSecondsAfterFinished = nil
		s.Run(t)
	})
}

func TestAnImageListPullJobSaysThatAQuotaRefusesItsJobs(t *testing.T) {
	s := newFaultScenario()
	s.Objects[0].(*kruise.ImageListPullJob).Spec.CompletionPolicy.TTLSecondsAfterFinished = nil
	s.RunWait(t, faultinjection.RefuseCreates("ImagePullJob", func(c *faultinjection.Cluster) string {
		list := &kruise.ImageListPullJob{}
		c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(s.Objects[0]), list))
		if list.Status.CompletionTime == nil {
			return "the list is not complete"
		}
		return ""
	}))
}
