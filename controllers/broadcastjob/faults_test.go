// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// newFaultScenario is a job on two nodes, one after the other, whose kubelets run pods to their end; those of broken nodes fail.
func newFaultScenario(t *testing.T, broken map[string]bool, edit func(*kruise.BroadcastJob)) faultinjection.Scenario {
	t.Helper()
	e := newEngine(t)
	job := &kruise.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "upgrade", UID: "j1"}}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}
	job.Spec.CompletionPolicy.Type = kruise.AlwaysCompletionPolicyType
	job.Spec.Parallelism = ptr.To(intstr.FromInt32(1))
	if edit != nil {
		edit(job)
	}
	objects := []client.Object{job}
	for _, name := range []string{"a", "b"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("10")}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		objects = append(objects, n)
	}
	return faultinjection.Scenario{
		Objects: objects,
		Build:   func(b *fake.ClientBuilder) { b.WithIndex(&corev1.Pod{}, rollout.OwnerIndex, rollout.OwnerUID) },
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock})
		},
		Requests: faultinjection.RequestFor(job),
		Watches:  map[string]faultinjection.Changes{"BroadcastJob": faultinjection.ChangesOfSpec},
		Others: func(c *faultinjection.Cluster) {
			pods := &corev1.PodList{}
			c.Must(c.Client.List(c.Context(), pods))
			for i := range pods.Items {
				pod := &pods.Items[i]
				before := pod.DeepCopy()
				pod.Status.Phase = corev1.PodSucceeded
				if broken[nodefit.NodeOf(pod)] {
					pod.Status.Phase = corev1.PodFailed
				}
				c.PatchStatus(pod, before)
			}
		},
		Delay: 6 * time.Minute,
	}
}

func TestNoFailedCallLeavesABroadcastJobUnfinished(t *testing.T) {
	t.Run("that succeeds", func(t *testing.T) { newFaultScenario(t, nil, nil).Run(t) })
	t.Run("that fails", func(t *testing.T) { newFaultScenario(t, map[string]bool{"a": true}, nil).Run(t) })
	t.Run("with a TTL", func(t *testing.T) {
		newFaultScenario(t, nil, func(job *kruise.BroadcastJob) { job.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int32](60) }).Run(t)
	})
}

func TestABroadcastJobSaysThatAQuotaRefusesItsPods(t *testing.T) {
	newFaultScenario(t, nil, nil).RunWait(t, faultinjection.RefuseCreates("Pod", func(c *faultinjection.Cluster) string {
		list := &kruise.BroadcastJobList{}
		c.Must(c.Client.List(c.Context(), list))
		if phase := list.Items[0].Status.Phase; phase != kruise.BroadcastJobPhaseCompleted {
			return "the job is " + string(phase)
		}
		return ""
	}))
}
