// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
)

// A pod that has left its services for a restart is not kept out of them for longer than its grace, though a write fails.
func TestARoundThatFailsKeepsTheEndOfTheGrace(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	began := metav1.NewTime(now.Add(-10 * time.Second))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	pod.Spec.Containers = []corev1.Container{{Name: "c0"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "c0", ContainerID: "containerd://new", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}},
	}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: kruise.KruisePodReady, Status: corev1.ConditionFalse}}
	r := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "r", CreationTimestamp: began, Labels: map[string]string{kruise.ContainerRecreateRequestPodUIDKey: "u"},
	}}
	r.Spec.PodName, r.Spec.ActiveDeadlineSeconds = "web", ptr.To[int64](300)
	r.Spec.Strategy = &kruise.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: ptr.To[int64](30)}
	r.Spec.Containers = []kruise.ContainerRecreateRequestContainer{{Name: "c0", StatusContext: &kruise.ContainerRecreateRequestContainerContext{ContainerID: "containerd://old"}}}
	r.Status.Phase = recreating
	r.Status.Conditions = []metav1.Condition{{Type: kruise.ContainerRecreateRequestPreRecreateGrace, Status: metav1.ConditionTrue, LastTransitionTime: began}}
	refused := errors.New("refused")
	c := fakeclient.NewClientBuilder(apiserver.Scheme(t)).WithObjects(pod, r).WithStatusSubresource(&kruise.ContainerRecreateRequest{}, &corev1.Pod{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return refused
		}}).Build()
	reconciler := New(reconcile.Deps{Client: c, Live: c, Events: record.NewFakeRecorder(10), Now: func() time.Time { return now }})
	res, err := reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)})
	if !errors.Is(err, refused) || res.RequeueAfter != 20*time.Second {
		t.Errorf("it is looked at again after %s, want the end of the grace after 20s: %v", res.RequeueAfter, err)
	}
}
