// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
	"github.com/regatta-sh/regatta/test/faultinjection"
	"github.com/regatta-sh/regatta/test/rules"
)

// newFaultScenario is a request for two containers of a pod that leaves its services first. The node agent restarts what it may.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	e := rules.Engine(t, "")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "p"}}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReady}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: kruise.KruisePodReady, Status: corev1.ConditionTrue}}}
	request := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r", UID: "r", Labels: map[string]string{
		kruise.ContainerRecreateRequestPodUIDKey: "p", kruise.ContainerRecreateRequestActiveKey: "true",
	}}}
	request.Spec.PodName = "web"
	request.Spec.TTLSecondsAfterFinished = ptr.To[int32](7200)
	request.Spec.Strategy = &kruise.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: ptr.To[int64](10)}
	for _, name := range []string{"c0", "c1"} {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: "web:1"})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, ContainerID: "containerd://" + name, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
		request.Spec.Containers = append(request.Spec.Containers, kruise.ContainerRecreateRequestContainer{
			Name: name, StatusContext: &kruise.ContainerRecreateRequestContainerContext{ContainerID: "containerd://" + name},
		})
	}
	return faultinjection.Scenario{
		Objects: []client.Object{pod, request},
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock})
		},
		Requests: faultinjection.RequestFor(request),
		Others:   restartPermitted,
	}
}

// restartPermitted is a node agent that restarts what it may at once, and a kubelet that reports it.
func restartPermitted(c *faultinjection.Cluster) {
	request, pod := &kruise.ContainerRecreateRequest{}, &corev1.Pod{}
	if err := c.Client.Get(c.Context(), client.ObjectKey{Namespace: "shop", Name: "r"}, request); err != nil {
		c.Must(client.IgnoreNotFound(err))
		return
	}
	c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, pod))
	if isFinished(request) {
		return
	}
	permits, err := permit.ReadPermits(request)
	c.Must(err)
	before, was := request.DeepCopy(), pod.DeepCopy()
	request.Status.Phase = kruise.ContainerRecreateRequestRecreating
	request.Status.ContainerRecreateStates = nil
	for i, container := range request.Spec.Containers {
		phase := kruise.ContainerRecreateRequestPending
		if _, may := permits[container.Name]; may {
			phase = kruise.ContainerRecreateRequestSucceeded
			pod.Status.ContainerStatuses[i].ContainerID = "containerd://new-" + container.Name
			pod.Status.ContainerStatuses[i].State.Running.StartedAt = metav1.NewTime(pod.CreationTimestamp.Add(time.Minute))
		}
		request.Status.ContainerRecreateStates = append(request.Status.ContainerRecreateStates, kruise.ContainerRecreateRequestContainerRecreateState{Name: container.Name, Phase: phase})
	}
	if len(permits) == len(request.Spec.Containers) {
		request.Status.Phase, request.Status.CompletionTime = kruise.ContainerRecreateRequestCompleted, ptr.To(metav1.NewTime(c.Now))
	}
	c.PatchStatus(request, before)
	c.PatchStatus(pod, was)
}

func TestNoFailedCallLeavesARequestUnfinished(t *testing.T) {
	newFaultScenario(t).Run(t)
}

// A node that is gone for good, and is not deleted, keeps the pods that tolerate that, and the pod of its agent: a request ends all the same.
func TestARequestOfANodeThatIsGoneForGoodEnds(t *testing.T) {
	e := rules.Engine(t, "")
	s := newFaultScenario(t)
	s.Objects[0].(*corev1.Pod).Spec.NodeName = "n1"
	s.Objects[1].(*kruise.ContainerRecreateRequest).Status.Phase = kruise.ContainerRecreateRequestRecreating // its agent has begun
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))}}
	s.Objects, s.Others = append(s.Objects, node), nil
	s.New = func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
		return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock},
			WithAgents(func(context.Context, string) (bool, time.Duration, error) { return true, 0, nil }))
	}
	s.RunWait(t, faultinjection.Wait{
		Says: kruise.ContainerRecreateRequestNoResponseMessage,
		Reaches: func(c *faultinjection.Cluster) string {
			request := &kruise.ContainerRecreateRequest{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(s.Objects[1]), request))
			if took := request.Status.CompletionTime.Sub(node.Status.Conditions[0].LastTransitionTime.Time); took > agentTime+time.Minute {
				return "it ended after " + took.String()
			}
			return ""
		},
	})
}
