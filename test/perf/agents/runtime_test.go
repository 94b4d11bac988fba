// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func list(t *testing.T, r *runtime) []*runtimev1.Container {
	t.Helper()
	out, err := r.ListContainers(t.Context(), &runtimev1.ListContainersRequest{Filter: &runtimev1.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.uid": "u"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out.GetContainers()
}

func TestAStoppedContainerRunsAgainOnce(t *testing.T) {
	var stopped []container
	r := newRuntime(0, func(c container) { stopped = append(stopped, c) })
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: "containerd://first", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	r.see(pod)
	for range 2 { // an agent that is killed may ask twice
		if _, err := r.StopContainer(t.Context(), &runtimev1.StopContainerRequest{ContainerId: "first"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(t, r); len(got) != 1 || got[0].GetState() != runtimev1.ContainerState_CONTAINER_EXITED || len(stopped) != 1 {
		t.Fatalf("it is %v, and was stopped %d times", got, len(stopped))
	}
	pod = pod.DeepCopy()
	run(pod, stopped[0], metav1.Now())
	r.see(pod)
	got := list(t, r)
	if len(got) != 1 || got[0].GetId() == "first" || got[0].GetMetadata().GetAttempt() != 1 || got[0].GetState() != runtimev1.ContainerState_CONTAINER_RUNNING {
		t.Fatalf("after it was started again: %v", got)
	}
	if s := pod.Status.ContainerStatuses[0]; s.RestartCount != 1 || s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ContainerID != "containerd://first" {
		t.Errorf("the pod says %+v", s)
	}
	r.lose(pod)
	if got := list(t, r); len(got) != 0 {
		t.Errorf("of a pod that is gone: %v", got)
	}
}

func TestCommandsFlap(t *testing.T) {
	r := newRuntime(0, nil)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: "containerd://first", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	r.see(pod)
	for i, share := range []float64{0, 1, 0, 1} {
		r.setFlap(share)
		out, err := r.ExecSync(t.Context(), &runtimev1.ExecSyncRequest{ContainerId: "first", Cmd: []string{"probe", "a"}})
		if want := []int32{0, 1, 1, 0}[i]; err != nil || out.GetExitCode() != want {
			t.Errorf("command %d exits with %d, want %d; %v", i, out.GetExitCode(), want, err)
		}
	}
}
