// SPDX-License-Identifier: Apache-2.0

package livenessprobe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// newFaultScenario is a pod whose container fails its probe. The node agent restarts it at the second request.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "p"}}
	pod.Spec = corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}
	if err := Write(pod, []Saved{{Name: "web", LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}}}); err != nil {
		t.Fatal(err)
	}
	started := metav1.NewTime(time.Date(2026, 1, 2, 2, 0, 0, 0, time.UTC))
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "web", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
	}}}
	agent := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "agent", Labels: map[string]string{"control-plane": "daemon"}}}
	agent.Spec.NodeName = "n1"
	agent.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	probes := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	probes.Status.PodProbeStatuses = []v1alpha1.PodProbeStatus{{Namespace: "shop", Name: "web", UID: "p", ProbeStates: []v1alpha1.ContainerProbeState{{
		Name: ProbeName("web"), State: v1alpha1.ProbeFailed, LastProbeTime: ptr.To(metav1.NewTime(started.Add(time.Minute))),
	}}}}
	return faultinjection.Scenario{
		Objects: []client.Object{pod, agent, probes},
		Build:   func(b *fake.ClientBuilder) { b.WithIndex(&corev1.Pod{}, nodes.Index, nodes.IndexValue) },
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Now: env.Clock}, "agents")
		},
		Requests: faultinjection.RequestFor(pod),
		Watches:  map[string]faultinjection.Changes{"ContainerRecreateRequest": faultinjection.NoChanges},
		Others:   restartAtTheSecondRequest,
		Delay:    3 * time.Minute, // a poll, and the time between two requests
	}
}

func restartAtTheSecondRequest(c *faultinjection.Cluster) {
	list := &kruise.ContainerRecreateRequestList{}
	c.Must(c.Client.List(c.Context(), list))
	for i := range list.Items {
		o := &list.Items[i]
		if o.Status.CompletionTime != nil {
			continue
		}
		before := o.DeepCopy()
		o.Status.Phase, o.Status.CompletionTime = kruise.ContainerRecreateRequestCompleted, ptr.To(metav1.NewTime(c.Now))
		c.PatchStatus(o, before)
		if len(o.Annotations) == 0 {
			continue // the container goes on
		}
		pod := &corev1.Pod{}
		c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: o.Namespace, Name: o.Spec.PodName}, pod))
		was := pod.DeepCopy()
		pod.Status.ContainerStatuses[0].ContainerID = "containerd://2"
		pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(c.Now)
		c.PatchStatus(pod, was)
	}
}

func TestNoFailedCallKeepsAContainerFromItsRestart(t *testing.T) {
	newFaultScenario(t).Run(t)
}

func TestNoFailedCallHidesThatANodeHasNoAgent(t *testing.T) {
	s := newFaultScenario(t)
	s.Objects = s.Objects[:1]
	s.Others = nil
	s.Run(t)
}

func TestAPodTellsThatItsRestartCannotBeAskedForWhileItLasts(t *testing.T) {
	s := newFaultScenario(t)
	s.Delay = 6 * time.Minute // that of an error, besides
	w := faultinjection.RefuseCreates("ContainerRecreateRequest", func(c *faultinjection.Cluster) string {
		pod := &corev1.Pod{}
		c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(s.Objects[0]), pod))
		if pod.Status.ContainerStatuses[0].ContainerID != "containerd://2" {
			return "the container was not restarted"
		}
		return ""
	})
	w.Says, w.Tells = "", w.Says
	s.RunWait(t, w)
}

func TestAPodTellsThatItsProbesCannotBeReadWhileItLasts(t *testing.T) {
	s := newFaultScenario(t)
	s.Objects[0].SetAnnotations(map[string]string{kruise.ContainerProbeContextKey: "{"})
	s.RunWait(t, faultinjection.Wait{Tells: "no liveness probe is run", Reaches: func(*faultinjection.Cluster) string { return "" }})
}
