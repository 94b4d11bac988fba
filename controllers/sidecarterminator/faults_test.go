// SPDX-License-Identifier: Apache-2.0

package sidecarterminator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/faultinjection"
	"github.com/regatta-sh/regatta/test/rules"
)

// newFaultScenario is a pod whose main container has ended. The node agent stops its sidecars at the second request.
func newFaultScenario(t *testing.T, virtual bool) faultinjection.Scenario {
	t.Helper()
	e := rules.Engine(t, "")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	sidecars := []corev1.Container{sidecar("proxy"), sidecar("log", kruise.TerminateSidecarIgnoreExitCodeEnv, "true")}
	if virtual {
		node.Labels = map[string]string{kruise.ServerlessNodeKey: kruise.ServerlessNodeValue}
		sidecars = []corev1.Container{sidecar("proxy", kruise.TerminateSidecarWhenJobExitWithImageEnv, "end")}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "report", UID: "p"}}
	pod.Spec = corev1.PodSpec{NodeName: "n1", RestartPolicy: corev1.RestartPolicyNever, Containers: append([]corev1.Container{{Name: "main", Image: "a"}}, sidecars...)}
	pod.Status.Phase = corev1.PodRunning
	for _, c := range pod.Spec.Containers {
		s := corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		if c.Name == "main" {
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, s)
	}
	return faultinjection.Scenario{
		Objects: []client.Object{node, pod},
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock})
		},
		Requests: faultinjection.RequestFor(pod),
		Watches:  map[string]faultinjection.Changes{"ContainerRecreateRequest": faultinjection.NoChanges, "Node": faultinjection.NoChanges},
		Others:   stopAtTheSecondRequest,
		Delay:    3 * time.Minute, // a poll, and the time between two requests
	}
}

func stopAtTheSecondRequest(c *faultinjection.Cluster) {
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
		for j := range pod.Status.ContainerStatuses {
			for _, stopped := range o.Spec.Containers {
				if pod.Status.ContainerStatuses[j].Name == stopped.Name {
					pod.Status.ContainerStatuses[j].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
				}
			}
		}
		c.PatchStatus(pod, was)
	}
}

func TestNoFailedCallLeavesASidecarRunning(t *testing.T) {
	t.Run("on a node", func(t *testing.T) { newFaultScenario(t, false).Run(t) })
	t.Run("on a virtual node", func(t *testing.T) { newFaultScenario(t, true).Run(t) })
}

// A pod says that the end of its sidecars cannot be asked for: it would run indefinitely without a word.
func TestAnEndThatCannotBeAskedForIsTold(t *testing.T) {
	s := newFaultScenario(t, false)
	c := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(s.Objects...).WithStatusSubresource(&corev1.Pod{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("exceeded quota")
		},
	}).Build()
	events := record.NewFakeRecorder(9)
	if _, err := New(reconcile.Deps{Client: c, Live: c, Events: events, Engine: rules.Engine(t, "")}).Reconcile(t.Context(), s.Requests[0]); err == nil {
		t.Fatal("there was no error")
	}
	select {
	case told := <-events.Events:
		if !strings.HasPrefix(told, "Warning FailedReconcile") || !strings.Contains(told, "exceeded quota") {
			t.Errorf("told was %q", told)
		}
	default:
		t.Error("nothing was told")
	}
}

func TestAPodTellsThatTheEndOfItsSidecarsCannotBeAskedForWhileItLasts(t *testing.T) {
	s := newFaultScenario(t, false)
	s.Delay = 6 * time.Minute // that of an error, besides
	s.Rounds = 600            // it polls each half minute
	w := faultinjection.RefuseCreates("ContainerRecreateRequest", func(c *faultinjection.Cluster) string {
		pod := &corev1.Pod{}
		c.Must(c.Client.Get(c.Context(), s.Requests[0].NamespacedName, pod))
		for _, status := range pod.Status.ContainerStatuses {
			if status.State.Running != nil {
				return "sidecar " + status.Name + " runs on"
			}
		}
		return ""
	})
	w.Says, w.Tells = "", w.Says
	s.RunWait(t, w)
}
