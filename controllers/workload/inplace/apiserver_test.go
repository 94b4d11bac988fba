// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/test/apiserver"
)

func resources(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}}
}

// both are resources with the requests that the API server adds to limits.
func both(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	r.Requests = r.Limits.DeepCopy()
	return r
}

// tell writes a status as a kubelet does that has given the containers of a pod resources.
func tell(t *testing.T, c client.Client, pod *corev1.Pod, has *corev1.ResourceRequirements) {
	t.Helper()
	pod.Status.Phase, pod.Status.ObservedGeneration = corev1.PodRunning, pod.Generation
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Image: "web:1", ImageID: "i1", ContainerID: "c1", Ready: true, Resources: has,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	if err := c.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// labelsComeWithTheStatus holds that an API server takes labels and annotations in a write of
// the status, which the fake client does not.
func labelsComeWithTheStatus(t *testing.T, c client.Client) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "web-", Labels: map[string]string{"app": "web", kruise.LifecycleStateKey: "PreparingNormal"}},
		Spec: corev1.PodSpec{
			NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "web:1"}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}},
		},
	}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	u := inplace.Updater{Client: c, Now: time.Now}
	opened, err := u.MarkReady(t.Context(), pod, func(p *corev1.Pod) { lifecycle.SetState(p, kruise.LifecycleStateNormal, time.Now()) })
	if err != nil {
		t.Fatal(err)
	}
	stored := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), stored); err != nil {
		t.Fatal(err)
	}
	if stored.ResourceVersion != opened.ResourceVersion || inplace.WantsReady(stored) || lifecycle.PodState(stored) != kruise.LifecycleStateNormal ||
		stored.Labels["app"] != "web" || stored.Annotations[kruise.LifecycleTimestampKey] == "" {
		t.Errorf("stored are the labels %v, the annotations %v and the conditions %v", stored.Labels, stored.Annotations, stored.Status.Conditions)
	}
}

// create makes a pod that a kubelet has told of.
func create(t *testing.T, c client.Client, has *corev1.ResourceRequirements) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "web-", Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "web-1"}},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "web:1", Resources: resources("1", "1Gi")}}},
	}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	tell(t, c, pod, has)
	return pod
}

// await waits until the API server knows the node well enough to let a pod there be resized.
func await(t *testing.T, c client.Client, has *corev1.ResourceRequirements) {
	t.Helper()
	pod := create(t, c, has)
	pod.Spec.Containers[0].Resources = both(resources("2", "2Gi"))
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.SubResource("resize").Update(ctx, pod)
		return err == nil, ignoreForbidden(err)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// What a real API server makes of a resize, which is a sub-resource that the fake client does
// not know, and of labels in a status.
func TestOnAnAPIServer(t *testing.T) {
	env := apiserver.Start(t)
	c, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	has := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("100")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	if err := c.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status = corev1.NodeStatus{Capacity: has, Allocatable: has}
	if err := c.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	one, two := both(resources("1", "1Gi")), both(resources("2", "1Gi"))
	await(t, c, &one)
	t.Run("labels come with the status", func(t *testing.T) { labelsComeWithTheStatus(t, c) })
	burstable := corev1.ResourceRequirements{Limits: two.Limits}
	change := func(r corev1.ResourceRequirements, images map[string]string) *kruise.UpdateSpec {
		return &kruise.UpdateSpec{Revision: "web-2", ContainerImages: images, ContainerResources: map[string]corev1.ResourceRequirements{"main": r}}
	}
	for name, tc := range map[string]struct {
		told     *corev1.ResourceRequirements // by the kubelet, before
		spec     *kruise.UpdateSpec
		refusals *inplace.Refusals
		refused  string // "" if it is taken
	}{
		"requests follow limits":                        {told: &one, spec: change(two, nil), refusals: &inplace.Refusals{}},
		"with an image":                                 {told: &one, spec: change(two, map[string]string{"main": "web:2"}), refusals: &inplace.Refusals{}},
		"another QoS class":                             {told: &one, spec: change(burstable, nil), refusals: &inplace.Refusals{}, refused: "Pod QOS Class may not change as a result of resizing"},
		"more than the node has":                        {told: &one, spec: change(both(resources("8", "1Gi")), nil), refusals: &inplace.Refusals{}, refused: "didn't have enough allocatable resources: cpu"},
		"a node that resizes nothing":                   {spec: change(two, nil), refusals: &inplace.Refusals{}, refused: "Pod running on node without support for resize"},
		"with an image that is refused":                 {told: &one, spec: change(two, map[string]string{"main": ""}), refusals: &inplace.Refusals{}, refused: "spec.containers[0].image"},
		"with an image that is refused, after the fact": {told: &one, spec: change(two, map[string]string{"main": ""}), refused: "spec.containers[0].image"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := create(t, c, tc.told)
			u := inplace.Updater{Client: c, Live: c, Now: time.Now, Refused: tc.refusals}
			_, _, err := u.Start(t.Context(), pod, tc.spec, nil)
			got := &corev1.Pod{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), got); err != nil {
				t.Fatal(err)
			}
			cpu, label, image := got.Spec.Containers[0].Resources.Limits.Cpu().String(), got.Labels[appsv1.ControllerRevisionHashLabelKey], got.Spec.Containers[0].Image
			if tc.refused != "" {
				if !(apierrors.IsInvalid(err) || apierrors.IsForbidden(err)) || !strings.Contains(err.Error(), tc.refused) || cpu != "1" || label != "web-1" || image != "web:1" {
					t.Errorf("%v; cpu %s, label %s, image %s", err, cpu, label, image)
				}
				return
			}
			if err != nil || cpu != "2" || got.Spec.Containers[0].Resources.Requests.Cpu().String() != "2" || label != "web-2" {
				t.Errorf("%v; cpu %s, label %s", err, cpu, label)
			}
			if want := tc.spec.ContainerImages["main"]; want != "" && image != want {
				t.Errorf("image %s", image)
			}
			if inplace.IncompleteReason(got) == "" {
				t.Error("it is complete before the kubelet has seen it")
			}
			if len(tc.spec.ContainerImages) > 0 {
				return
			}
			tell(t, c, got, &two)
			if why := inplace.IncompleteReason(got); why != "" {
				t.Errorf("it is not complete, %s", why)
			}
		})
	}
}
