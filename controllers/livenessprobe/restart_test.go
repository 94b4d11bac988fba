// SPDX-License-Identifier: Apache-2.0

package livenessprobe

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

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/restartrequest"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// A container whose restart cannot be asked for keeps no other one from its restart, nor from the next look at it.
func TestARestartThatCannotBeAskedForKeepsNoOtherContainerWaiting(t *testing.T) {
	started := metav1.Unix(1_700_000_000, 0)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "p"}}
	pod.Spec.NodeName = "n1"
	probes := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	probes.Status.PodProbeStatuses = []v1alpha1.PodProbeStatus{{Namespace: "shop", Name: "web", UID: "p"}}
	var saved []Saved
	for _, name := range []string{"a", "b", "c"} {
		saved = append(saved, Saved{Name: name, LivenessProbe: &corev1.Probe{}})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, ContainerID: "containerd://" + name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		})
		probes.Status.PodProbeStatuses[0].ProbeStates = append(probes.Status.PodProbeStatuses[0].ProbeStates, v1alpha1.ContainerProbeState{
			Name: ProbeName(name), State: v1alpha1.ProbeFailed, LastProbeTime: ptr.To(metav1.NewTime(started.Add(time.Minute))),
		})
	}
	c := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(pod, probes).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetLabels()[kruise.LivenessRequestKey] == "b" {
				return errors.New("broken")
			}
			return c.Create(ctx, o, opts...)
		},
	}).Build()
	r := New(reconcile.Deps{Client: c, Live: c, Events: record.NewFakeRecorder(9)}, "agents")
	after, err := r.requestRestarts(t.Context(), pod, saved)
	list := &kruise.ContainerRecreateRequestList{}
	if listed := c.List(t.Context(), list); listed != nil || err == nil || after != restartrequest.PollInterval || len(list.Items) != 2 {
		t.Errorf("%d restarts are asked for, again in %s: %v, %v", len(list.Items), after, err, listed)
	}
}

// A pod says that a restart of it cannot be asked for: its container would go on unhealthy without a word.
func TestARestartThatCannotBeAskedForIsTold(t *testing.T) {
	s := newFaultScenario(t)
	b := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(s.Objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("exceeded quota")
		},
	})
	s.Build(b)
	c, events := b.Build(), record.NewFakeRecorder(9)
	if _, err := New(reconcile.Deps{Client: c, Live: c, Events: events}, "agents").Reconcile(t.Context(), s.Requests[0]); err == nil {
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
