// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func pod(preStop *corev1.LifecycleHandler) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "u1"},
		Spec: corev1.PodSpec{NodeName: "n1", TerminationGracePeriodSeconds: ptr.To[int64](7), Containers: []corev1.Container{{
			Name: "main", Lifecycle: &corev1.Lifecycle{PreStop: preStop}, Ports: []corev1.ContainerPort{{ContainerPort: 80}},
		}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", ContainerID: "c1", RestartCount: 3}}},
	}
}

func request() *v1beta1.ContainerRecreateRequest {
	return &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "ns"},
		Spec:       v1beta1.ContainerRecreateRequestSpec{PodName: "web", Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "main"}}},
	}
}

func TestAContainerIsFilledIn(t *testing.T) {
	exec, get := &corev1.ExecAction{Command: []string{"sync"}}, &corev1.HTTPGetAction{Port: intstr.FromString("http")}
	tcp, run := &corev1.TCPSocketAction{}, &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "c1", RestartCount: 3}
	for _, tc := range []struct {
		name    string
		preStop *corev1.LifecycleHandler
		want    v1beta1.ContainerRecreateRequestContainer
	}{
		{"without a hook", nil, v1beta1.ContainerRecreateRequestContainer{}},
		{"with a command", &corev1.LifecycleHandler{Exec: exec}, v1beta1.ContainerRecreateRequestContainer{PreStop: &v1beta1.PreStopHandler{Exec: exec}}},
		{"with an HTTP request, which may name a port", &corev1.LifecycleHandler{HTTPGet: get},
			v1beta1.ContainerRecreateRequestContainer{PreStop: &v1beta1.PreStopHandler{HTTPGet: get}, Ports: []corev1.ContainerPort{{ContainerPort: 80}}}},
		{"with a connection", &corev1.LifecycleHandler{TCPSocket: tcp}, v1beta1.ContainerRecreateRequestContainer{PreStop: &v1beta1.PreStopHandler{TCPSocket: tcp}}},
		{"with a pause", &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}},
			v1beta1.ContainerRecreateRequestContainer{PreStop: &v1beta1.PreStopHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}},
		{"with nothing in it", &corev1.LifecycleHandler{}, v1beta1.ContainerRecreateRequestContainer{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.Name, tc.want.StatusContext = "main", run
			got, why := containerOf(pod(tc.preStop), "main")
			if diff := cmp.Diff(&tc.want, got); diff != "" || why != "" {
				t.Errorf("%s (-want +got):\n%s", why, diff)
			}
		})
	}
}

// reader is a cluster where some kinds cannot be read.
type reader struct {
	client.Reader
	broken string
}

func (r reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	_, node := object.(*corev1.Node)
	if node == (r.broken == "node") && r.broken != "" {
		return errors.New("no cache")
	}
	return r.Reader.Get(ctx, key, object, options...)
}

func TestARequestThatIsFilledInIsRight(t *testing.T) {
	moved := pod(nil)
	moved.Status.ContainerStatuses[0].ContainerID = "c2"
	terminating := pod(nil)
	terminating.DeletionTimestamp, terminating.Finalizers = ptr.To(metav1.Now()), []string{"x/y"}
	for _, tc := range []struct {
		name         string
		before       *corev1.Pod // when it is filled in
		pod          *corev1.Pod // when it is validated
		breaks       string
		want, atPath string
	}{
		{name: "of a pod that stays as it is", before: pod(nil), pod: pod(nil)},
		{name: "not of a container that was restarted meanwhile", before: pod(nil), pod: moved, want: "ready-only fields", atPath: "spec.containers[0]"},
		{name: "not of a pod that came meanwhile", pod: pod(nil), want: "has changed since", atPath: "spec.containers[0]"},
		{name: "not of a pod that is being deleted", before: pod(nil), pod: terminating, want: "is being deleted", atPath: "spec.podName"},
		{name: "not while pods cannot be read", before: pod(nil), pod: pod(nil), breaks: "pod", want: "finding pod web: no cache", atPath: "spec.podName"},
		{name: "not while nodes cannot be read", before: pod(nil), pod: pod(nil), breaks: "node", want: "finding node n1: no cache", atPath: "spec.podName"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
			at := func(pod *corev1.Pod) client.Reader {
				c := fake.NewClientBuilder().WithObjects(node)
				if pod != nil {
					c = c.WithObjects(pod)
				}
				return c.Build()
			}
			o, found := request(), &rules.Findings{}
			New(at(nil)).Default(o, nil)
			New(at(tc.before)).Fill(t.Context(), o)
			if tc.before != nil && (o.Labels[v1beta1.ContainerRecreateRequestPodUIDKey] != "u1" || *o.Spec.Strategy.TerminationGracePeriodSeconds != 7) {
				t.Errorf("filled in: %v, %v", o.Labels, o.Spec)
			}
			New(reader{at(tc.pod), tc.breaks}).Validate(t.Context(), o, nil, found)
			if (tc.want == "") != (len(found.Errs) == 0) {
				t.Fatalf("got %v", found.Errs)
			}
			if tc.want != "" && (found.Errs[0].Field != tc.atPath || !strings.Contains(found.Errs[0].Error(), tc.want)) {
				t.Errorf("got %v", found.Errs)
			}
		})
	}
}
