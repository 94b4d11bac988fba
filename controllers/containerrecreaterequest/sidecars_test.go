// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func TestWhichRequestsEndWithTheirSidecars(t *testing.T) {
	ended := func(code int32) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code}
	}
	for name, tc := range map[string]struct {
		request string
		policy  corev1.RestartPolicy
		phase   corev1.PodPhase
		state   *corev1.ContainerStateTerminated
		want    bool
	}{
		"one that has ended":                           {"sidecar-termination-u", corev1.RestartPolicyNever, corev1.PodRunning, ended(143), true},
		"one that runs":                                {"sidecar-termination-u", corev1.RestartPolicyNever, corev1.PodRunning, nil, false},
		"one that comes again":                         {"sidecar-termination-u", corev1.RestartPolicyOnFailure, corev1.PodRunning, ended(143), false},
		"one that does not come again":                 {"sidecar-termination-u", corev1.RestartPolicyOnFailure, corev1.PodRunning, ended(0), true},
		"one of a pod that has ended by its phase":     {"sidecar-termination-u", corev1.RestartPolicyOnFailure, corev1.PodSucceeded, ended(143), true},
		"a request of a user, who waits for a restart": {"r", corev1.RestartPolicyNever, corev1.PodRunning, ended(0), false},
	} {
		t.Run(name, func(t *testing.T) {
			request := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Name: tc.request}}
			request.Spec.Containers = []kruise.ContainerRecreateRequestContainer{{Name: "proxy"}}
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: tc.policy}, Status: corev1.PodStatus{Phase: tc.phase}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", State: corev1.ContainerState{Terminated: tc.state}}}
			if got := sidecarsEnded(request, pod); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
