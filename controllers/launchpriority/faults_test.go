// SPDX-License-Identifier: Apache-2.0

package launchpriority

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// newFaultScenario is a pod with three priorities whose kubelet starts each container that it can.
func newFaultScenario() faultinjection.Scenario {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "new"}}
	for name, priority := range map[string]int64{"a": 2, "b": 1, "c": 0} {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Env: []corev1.EnvVar{BarrierEnv("web", priority)}})
	}
	old := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-barrier", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "old"}},
	}, Data: map[string]string{"p_0": "true"}}
	return faultinjection.Scenario{
		Objects: []client.Object{pod, old},
		New: func(_ testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			return &Reconciler{reconcile.Deps{Client: e.Client, Live: e.Client, Events: e.Events, Now: e.Clock}}
		},
		Requests: faultinjection.RequestFor(pod),
		Watches:  map[string]faultinjection.Changes{"ConfigMap": faultinjection.NoChanges},
		Others:   func(c *faultinjection.Cluster) { startContainers(c, client.ObjectKeyFromObject(pod)) },
	}
}

// startContainers makes the containers ready whose barriers are open.
func startContainers(c *faultinjection.Cluster, key client.ObjectKey) {
	pod, barriers := &corev1.Pod{}, &corev1.ConfigMap{}
	c.Must(c.Client.Get(c.Context(), key, pod))
	c.Must(client.IgnoreNotFound(c.Client.Get(c.Context(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name + "-barrier"}, barriers)))
	if belongsToOther(barriers, pod) {
		return
	}
	before := pod.DeepCopy()
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		priority, _ := PriorityOf(&container)
		_, open := barriers.Data["p_"+string(rune('0'+priority))]
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, Ready: open})
	}
	c.PatchStatus(pod, before)
}

func TestNoFailedCallStopsTheBarriersOfAPod(t *testing.T) {
	newFaultScenario().Run(t)
}

func TestABarrierThatIsRefusedIsOpenedLater(t *testing.T) {
	s := newFaultScenario()
	key := client.ObjectKey{Namespace: "shop", Name: "web"}
	s.RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Kind == "ConfigMap" },
		Reaches: func(c *faultinjection.Cluster) string {
			pod := &corev1.Pod{}
			c.Must(c.Client.Get(c.Context(), key, pod))
			if HasPendingBarriers(pod) {
				return "barriers are still to be opened"
			}
			return ""
		},
	})
}

// A pod says that a barrier of it cannot be opened: its containers would wait indefinitely without a word of why.
func TestABarrierThatIsRefusedIsTold(t *testing.T) {
	s := newFaultScenario()
	c := fake.NewClientBuilder().WithObjects(s.Objects[0]).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("exceeded quota")
		},
	}).Build()
	events := record.NewFakeRecorder(9)
	r := &Reconciler{reconcile.Deps{Client: c, Live: c, Events: events, Now: time.Now}}
	if _, err := r.Reconcile(t.Context(), s.Requests[0]); err == nil || len(events.Events) != 1 {
		t.Errorf("%d events tell of %v", len(events.Events), err)
	}
}
