// SPDX-License-Identifier: Apache-2.0

package launchpriority

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// barred is a pod of a Job with containers, such as "a/1" for one with a barrier of priority 1, "b/1 ready" for one that is ready, "c/1
// unready" for one that has a status and is not, "d/1 exit0" for one that has ended, and "e" for one without a barrier.
func barred(containers ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}}
	for _, text := range containers {
		text, state, _ := strings.Cut(text, " ")
		name, digits, has := strings.Cut(text, "/")
		c := corev1.Container{Name: name}
		if has {
			env := BarrierEnv("web", 0)
			env.ValueFrom.ConfigMapKeyRef.Key = prefix + digits
			c.Env = []corev1.EnvVar{{Name: "OTHER"}, env}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		if state != "" {
			st := corev1.ContainerStatus{Name: name, Ready: state == "ready"}
			if code, ended := strings.CutPrefix(state, "exit"); ended {
				st.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: int32(code[0] - '0')}
			}
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, st)
		}
	}
	return pod
}

func TestWhichPodsWaitForBarriers(t *testing.T) {
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: kind, Status: status}}
		}
	}
	completed := func(value string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{kruise.ContainerLaunchPriorityCompletedKey: value}
		}
	}
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		change func(*corev1.Pod)
		want   bool
	}{
		"a new pod":                             {barred("a/1", "b/0"), nil, true},
		"a pod without barriers":                {barred("a", "b"), nil, false},
		"one container has a barrier":           {barred("a", "b/0"), nil, true},
		"a barrier that is none of ours":        {barred("a/high", "b"), nil, false},
		"its barriers are completed":            {barred("a/1", "b/0"), completed("true"), false},
		"another value of that annotation":      {barred("a/1", "b/0"), completed("false"), true},
		"its containers are ready":              {barred("a/1", "b/0"), condition(corev1.ContainersReady, corev1.ConditionTrue), false},
		"its containers are not ready":          {barred("a/1", "b/0"), condition(corev1.ContainersReady, corev1.ConditionFalse), true},
		"nobody knows if its containers are":    {barred("a/1", "b/0"), condition(corev1.ContainersReady, corev1.ConditionUnknown), true},
		"another condition is true":             {barred("a/1", "b/0"), condition(corev1.PodReady, corev1.ConditionTrue), true},
		"it is being deleted":                   {barred("a/1", "b/0"), func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
		"an init container alone has a barrier": {barred("a"), func(pod *corev1.Pod) { pod.Spec.InitContainers = barred("b/0").Spec.Containers }, false},
		"it has failed":                         {barred("a/1", "b/0"), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, false},
		"a barrier whose value is not from a key": {barred("a"), func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: kruise.ContainerLaunchBarrierEnv, Value: "p_1"}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(tc.pod)
			}
			if got := HasPendingBarriers(tc.pod); got != tc.want {
				t.Errorf("it waits: %t, want %t", got, tc.want)
			}
		})
	}
}

// A container that is started again is waited for, as it may become ready.
func TestTheNextBarrierWaitsForContainersThatAreStartedAgain(t *testing.T) {
	for policy, want := range map[corev1.RestartPolicy]step{
		corev1.RestartPolicyNever: {failed: "a"}, corev1.RestartPolicyOnFailure: {}, corev1.RestartPolicyAlways: {},
	} {
		pod := barred("a/2 exit1", "b/1")
		pod.Spec.RestartPolicy = policy
		if got := nextStep(pod, map[string]string{"p_2": "true"}); got != want {
			t.Errorf("%s: %+v, want %+v", policy, got, want)
		}
	}
}

func TestWhichBarrierOpensNext(t *testing.T) {
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		opened string
		want   step
	}{
		"the highest of a new pod":                         {barred("a/0", "b/2", "c/1"), "", step{open: "p_2"}},
		"none while its container is not ready":            {barred("a/0", "b/2 unready", "c/1"), "p_2", step{}},
		"none while one of two containers of it is not":    {barred("a/0", "b/2 ready", "c/2 unready"), "p_2", step{}},
		"the next one when it is":                          {barred("a/0", "b/2 ready", "c/1"), "p_2", step{open: "p_1"}},
		"the lowest one is the last":                       {barred("a/0", "b/2 ready", "c/1 ready"), "p_2 p_1", step{open: "p_0", done: true}},
		"that of several containers too":                   {barred("a/0", "b/2 ready", "c/0"), "p_2", step{open: "p_0", done: true}},
		"all containers are ready":                         {barred("a/1 ready", "b/0 ready"), "p_1", step{done: true}},
		"all that have barriers are ready":                 {barred("a/1 ready", "b"), "", step{done: true}},
		"the lowest is open":                               {barred("a/1 ready", "b/0 unready"), "p_1 p_0", step{done: true}},
		"the lowest is open and a higher one is not":       {barred("a/1 unready", "b/0 unready"), "p_0", step{done: true}},
		"a container of an open barrier is not ready":      {barred("a/2 unready", "b/1 ready", "c/0"), "p_2 p_1", step{}},
		"one without a barrier is not waited for":          {barred("a/1 ready", "b/0", "c unready"), "p_1", step{open: "p_0", done: true}},
		"a barrier that is none of ours is not waited for": {barred("a/1 ready", "b/0", "c/high unready"), "p_1", step{open: "p_0", done: true}},
		"numbers of 64 bits that differ by one":            {barred("a/9223372036854775806", "b/9223372036854775807 ready"), "p_9223372036854775807", step{open: "p_9223372036854775806", done: true}},
		"one that has succeeded is not waited for":         {barred("a/2 exit0", "b/1", "c/0"), "p_2", step{open: "p_1"}},
		"all of a Job have succeeded":                      {barred("a/2 exit0", "b/1 exit0"), "p_2", step{done: true}},
		"one that has failed for good keeps the others":    {barred("a/2 exit1", "b/1", "c/0"), "p_2", step{failed: "a"}},
		"also beside one that has succeeded":               {barred("a/2 exit0", "b/2 exit1", "c/0"), "p_2", step{failed: "b"}},
		"one of the lowest that has failed keeps none":     {barred("a/2 exit0", "b/1 exit1"), "p_2 p_1", step{done: true}},
		"one of the lowest has no other behind it":         {barred("a/2 exit0", "b/1 exit1"), "p_2", step{open: "p_1", done: true}},
		"from the highest to the lowest of 64 bits":        {barred("a/-9223372036854775808", "b/9223372036854775807"), "", step{open: "p_9223372036854775807"}},
	} {
		t.Run(name, func(t *testing.T) {
			opened := map[string]string{}
			for _, key := range strings.Fields(tc.opened) {
				opened[key] = "true"
			}
			if got := nextStep(tc.pod, opened); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}
