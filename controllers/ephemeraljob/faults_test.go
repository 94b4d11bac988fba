// SPDX-License-Identifier: Apache-2.0

package ephemeraljob

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/jobcondition"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/faultinjection"
	"github.com/regatta-sh/regatta/test/rules"
)

// newFaultScenario is a job for two pods, one at a time, whose kubelet runs the containers to their end.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	e := rules.Engine(t, "")
	job := &kruise.EphemeralJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "look", UID: "j"}}
	job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	job.Spec.Parallelism = ptr.To[int32](1)
	job.Spec.TTLSecondsAfterFinished = ptr.To[int32](7200)
	job.Spec.Template.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "dbg", Image: "busybox"}}}
	objects := []client.Object{job}
	for _, name := range []string{"a", "b"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "nginx"}}
		pod.Spec.NodeName, pod.Status.Phase = "n1", corev1.PodRunning
		objects = append(objects, pod)
	}
	return faultinjection.Scenario{
		Objects: objects,
		Build:   func(b *fake.ClientBuilder) { b.WithIndex(&corev1.Pod{}, rollout.OwnerIndex, rollout.OwnerUID) },
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock})
		},
		Requests: faultinjection.RequestFor(job),
		Watches:  map[string]faultinjection.Changes{"EphemeralJob": faultinjection.ChangesOfSpec},
		Others:   endEphemeralContainers,
		Delay:    2 * time.Minute,
	}
}

func endEphemeralContainers(c *faultinjection.Cluster) {
	list := &corev1.PodList{}
	c.Must(c.Client.List(c.Context(), list))
	for i := range list.Items {
		pod := &list.Items[i]
		before := pod.DeepCopy()
		pod.Status.EphemeralContainerStatuses = nil
		for _, container := range pod.Spec.EphemeralContainers {
			pod.Status.EphemeralContainerStatuses = append(pod.Status.EphemeralContainerStatuses, corev1.ContainerStatus{
				Name: container.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Unix(1_700_000_000, 0)}},
			})
		}
		c.PatchStatus(pod, before)
	}
}

func TestNoFailedCallLeavesAnEphemeralJobUnfinished(t *testing.T) {
	newFaultScenario(t).Run(t)
}

func TestAnEphemeralContainerThatIsRefusedIsTold(t *testing.T) {
	newFaultScenario(t).RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Subresource == "ephemeralcontainers" },
		Says:   "an admission webhook refuses it",
		Reaches: func(c *faultinjection.Cluster) string {
			job := &kruise.EphemeralJob{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: "shop", Name: "look"}, job))
			if job.Status.Phase != kruise.EphemeralJobFailed { // a pod that refuses the container for a minute has failed
				return "the job is " + string(job.Status.Phase)
			}
			return ""
		},
	})
}

// The kubelet of a node that is gone for good, and is not deleted, reports no end. Pods that tolerate it stay there.
func TestAJobOfANodeThatIsGoneForGoodEnds(t *testing.T) {
	gone := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		deadline *int64
		says     string
		// ends is how long after the node was gone the job has failed.
		ends time.Duration
	}{
		"without a deadline":       {says: "node n1 of pod a is not ready for longer than 10m0s", ends: 10 * time.Minute},
		"with one of its user":     {deadline: ptr.To[int64](3600), says: kruise.EphemeralJobDeadlineExceededReason, ends: time.Hour},
		"with one that is shorter": {deadline: ptr.To[int64](60), says: kruise.EphemeralJobDeadlineExceededReason, ends: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFaultScenario(t)
			job := s.Objects[0].(*kruise.EphemeralJob)
			job.Spec.ActiveDeadlineSeconds = tc.deadline
			job.Spec.Parallelism = ptr.To[int32](2)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(gone)}}
			s.Objects = append(s.Objects, node)
			s.Watches["Node"] = faultinjection.NoChanges
			told := false
			s.Others = func(c *faultinjection.Cluster) { // no kubelet
				now := &kruise.EphemeralJob{}
				c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(job), now))
				told = told || jobcondition.Find(now.Status.Conditions, kruise.EphemeralJobWaitingForNodes) != nil
			}
			s.Quiet = 70 * time.Minute
			s.RunWait(t, faultinjection.Wait{
				Says: tc.says,
				Reaches: func(c *faultinjection.Cluster) string {
					now := &kruise.EphemeralJob{}
					c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(job), now))
					switch took := ptr.Deref(now.Status.CompletionTime, metav1.Time{}).Sub(gone); {
					case !told:
						return "no condition told of the node meanwhile"
					case now.Status.Phase != kruise.EphemeralJobFailed || took < tc.ends || took > tc.ends+time.Minute:
						return fmt.Sprintf("after %s the job is %s: %+v", took, now.Status.Phase, now.Status.Conditions)
					}
					return ""
				},
			})
		})
	}
}

// A kubelet may work on a node that has not been ready for long before the job, such as one without a network plugin.
func TestAJobOnANodeThatWasNotReadyBeforeHasItsTime(t *testing.T) {
	s := newFaultScenario(t)
	s.Objects[0].(*kruise.EphemeralJob).Spec.Parallelism = ptr.To[int32](2)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}}
	s.Objects = append(s.Objects, node)
	s.Watches["Node"] = faultinjection.NoChanges
	s.Others = func(*faultinjection.Cluster) {} // it reports no end
	s.Quiet = 20 * time.Minute
	s.RunWait(t, faultinjection.Wait{
		Says: "node n1 of pod a is not ready for longer than 10m0s",
		Reaches: func(c *faultinjection.Cluster) string {
			now := &kruise.EphemeralJob{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(s.Objects[0]), now))
			started, ended := ptr.Deref(now.Status.StartTime, metav1.Time{}), ptr.Deref(now.Status.CompletionTime, metav1.Time{})
			if took := ended.Sub(started.Time); now.Status.Phase != kruise.EphemeralJobFailed || took < 10*time.Minute || took > 11*time.Minute {
				return fmt.Sprintf("after %s the job is %s: %+v", took, now.Status.Phase, now.Status.Conditions)
			}
			return ""
		},
	})
}

func TestAJobWhoseNodeIsBackGoesOn(t *testing.T) {
	s := newFaultScenario(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))}}
	s.Objects = append(s.Objects, node)
	s.Others = func(c *faultinjection.Cluster) {
		if c.Now.Before(node.Status.Conditions[0].LastTransitionTime.Add(5 * time.Minute)) {
			return
		}
		before := node.DeepCopy()
		c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(node), before))
		after := before.DeepCopy()
		after.Status.Conditions[0].Status = corev1.ConditionTrue
		c.PatchStatus(after, before)
		endEphemeralContainers(c)
	}
	s.RunWait(t, faultinjection.Wait{
		Says: kruise.EphemeralJobSucceededReason,
		Reaches: func(c *faultinjection.Cluster) string {
			job := &kruise.EphemeralJob{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(s.Objects[0]), job))
			if job.Status.Phase != kruise.EphemeralJobSucceeded || jobcondition.Find(job.Status.Conditions, kruise.EphemeralJobWaitingForNodes) != nil {
				return fmt.Sprintf("the job is %s: %+v", job.Status.Phase, job.Status.Conditions)
			}
			return ""
		},
	})
}
