// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/faultinjection"
	"github.com/regatta-sh/regatta/test/rules"
)

// newFaultScenario is a schedule of two runs, ten minutes apart, of which the last one is kept, until a user pauses it.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	e := rules.Engine(t, "")
	job := &kruise.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backup", UID: "c1"}}
	job.Spec = kruise.AdvancedCronJobSpec{
		Schedule: "*/10 * * * *", ConcurrencyPolicy: kruise.ForbidConcurrent, SuccessfulJobsHistoryLimit: ptr.To[int32](1), FailedJobsHistoryLimit: ptr.To[int32](1),
	}
	job.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{}
	job.Spec.Template.JobTemplate.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}
	return faultinjection.Scenario{
		Objects: []client.Object{job},
		Build: func(b *fake.ClientBuilder) {
			for _, o := range []client.Object{&batchv1.Job{}, &kruise.BroadcastJob{}, &kruise.ImageListPullJob{}} {
				b.WithIndex(o, rollout.OwnerIndex, rollout.OwnerUID)
			}
		},
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock})
		},
		Requests: faultinjection.RequestFor(job),
		Watches:  map[string]faultinjection.Changes{"AdvancedCronJob": faultinjection.ChangesOfSpec},
		Others:   endJobs,
		Random:   regexp.MustCompile(`\d{10}`), // the times in the names of jobs
		Delay:    11 * time.Minute,
	}
}

// endJobs ends each job at once, and pauses the schedule after 22 minutes.
func endJobs(c *faultinjection.Cluster) {
	jobs := &batchv1.JobList{}
	c.Must(c.Client.List(c.Context(), jobs))
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if job.Status.CompletionTime == nil {
			before := job.DeepCopy()
			job.Status.CompletionTime = ptr.To(metav1.NewTime(c.Now))
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.Now)}}
			c.PatchStatus(job, before)
		}
	}
	schedule := &kruise.AdvancedCronJob{}
	c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: "shop", Name: "backup"}, schedule))
	if schedule.Spec.Paused == nil && c.Now.After(schedule.CreationTimestamp.Add(29*time.Minute)) {
		schedule.Spec.Paused = ptr.To(true)
		c.Must(c.Client.Update(c.Context(), schedule))
	}
}

func TestNoFailedCallEndsASchedule(t *testing.T) {
	newFaultScenario(t).Run(t)
}

func TestAScheduleSaysThatItsJobsAreRefused(t *testing.T) {
	s := newFaultScenario(t)
	s.Objects[0].(*kruise.AdvancedCronJob).Spec.Schedule = "10 3 * * *"
	s.Others = nil
	s.RunWait(t, faultinjection.RefuseCreates("Job", func(c *faultinjection.Cluster) string {
		list := &batchv1.JobList{}
		if c.Must(c.Client.List(c.Context(), list)); len(list.Items) != 1 {
			return fmt.Sprintf("there are %d jobs", len(list.Items))
		}
		return ""
	}))
}
