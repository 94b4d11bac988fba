// SPDX-License-Identifier: Apache-2.0

package launchpriority

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	points "github.com/regatta-sh/regatta/engine/decision/launchpriority"
)

// Whatever a pod has, containers start in the order of their priorities, none is lost, and the pod can be read as it was declared.
func TestNativeSidecarsKeepTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := &corev1.Pod{}
		always := corev1.ContainerRestartPolicyAlways
		for i := range rapid.IntRange(0, 2).Draw(t, "init containers") {
			c := corev1.Container{Name: fmt.Sprint("init-", i)}
			if rapid.Bool().Draw(t, "restarts") {
				c.RestartPolicy = &always
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		}
		priorities := map[string]int64{}
		for i := range rapid.IntRange(1, 5).Draw(t, "containers") {
			c := corev1.Container{Name: fmt.Sprint("c-", i), Image: "i"}
			priorities[c.Name] = rapid.Int64Range(-2, 2).Draw(t, "priority")
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
		was := pod.DeepCopy()
		in := points.OrderInput{}
		for _, c := range pod.Spec.Containers {
			in.Containers = append(in.Containers, points.Container{Name: c.Name})
		}
		MakeNativeSidecars(pod, points.OrderOutput{Priorities: priorities}.EarlyContainers(in), priorities)
		n := len(was.Spec.InitContainers)
		if diff := cmp.Diff(was.Spec.InitContainers, pod.Spec.InitContainers[:n:n], equal); diff != "" {
			t.Fatalf("the init containers that there were:\n%s", diff)
		}
		moved := pod.Spec.InitContainers[n:]
		if len(moved)+len(pod.Spec.Containers) != len(was.Spec.Containers) || len(pod.Spec.Containers) == 0 {
			t.Fatalf("%d of %d containers were moved, and %d stay", len(moved), len(was.Spec.Containers), len(pod.Spec.Containers))
		}
		last := priorities[pod.Spec.Containers[0].Name]
		for i, c := range moved {
			if c.RestartPolicy == nil || *c.RestartPolicy != always || priorities[c.Name] <= last || i > 0 && priorities[c.Name] > priorities[moved[i-1].Name] {
				t.Fatalf("%s is at %d of %v, priorities are %v", c.Name, i, moved, priorities)
			}
		}
		for _, c := range pod.Spec.Containers {
			if priorities[c.Name] != last {
				t.Fatalf("%s starts with the last", c.Name)
			}
		}
		declared := DeclaredPod(pod)
		if diff := cmp.Diff(was.Spec, declared.Spec, equal); diff != "" || len(declared.Annotations) != 0 {
			t.Fatalf("it declared\n%s%v", diff, declared.Annotations)
		}
	})
}

// equal has lists that are empty as those that there are not.
var equal = cmp.FilterValues(func(a, b []corev1.Container) bool { return len(a)+len(b) == 0 }, cmp.Ignore())

func TestOnlyWhatWasMovedGoesBack(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{}
	pod.Annotations = map[string]string{"apps.kruise.io/container-launch-priority-native": "proxy,gone,plain,main"}
	pod.Spec.InitContainers = []corev1.Container{{Name: "own", RestartPolicy: &always}, {Name: "plain"}, {Name: "proxy", RestartPolicy: &always}}
	pod.Spec.Containers = []corev1.Container{{Name: "added"}, {Name: "main"}}
	got := DeclaredPod(pod)
	names := ""
	for _, c := range append(got.Spec.InitContainers, got.Spec.Containers...) {
		names += c.Name + " "
	}
	if names != "own plain proxy added main " || len(pod.Spec.InitContainers) != 3 {
		t.Error(names)
	}
	if unmarked := (&corev1.Pod{}); DeclaredPod(unmarked) != unmarked {
		t.Error("a pod without the annotation was copied")
	}
}
