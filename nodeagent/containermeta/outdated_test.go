// SPDX-License-Identifier: Apache-2.0

package containermeta

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
)

var began = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// colored is a pod of a CloneSet with containers whose env reads an annotation each, color
// of its name; they run with the values that the pod has.
func colored(names ...string) *corev1.Pod {
	controls := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Annotations: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: "o1", Controller: &controls}}}}
	pod.Spec.NodeName = "n1"
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
	for _, name := range names {
		pod.Annotations[name] = "blue"
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: "web:1", Env: []corev1.EnvVar{{
			Name: "COLOR", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + name + "']"}},
		}}})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, ContainerID: "containerd://" + name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionTrue}}
	return pod
}

// toldOf is what the agent says of a pod whose containers run with the labels and
// annotations that it has.
func toldOf(pod *corev1.Pod) (set kruise.RuntimeContainerMetaSet) {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		e := kruise.RuntimeContainerMeta{Name: c.Name, ContainerID: "containerd://" + c.Name}
		e.Hashes.PlainHash, e.Hashes.ExtractedEnvFromMetadataHash = runtimemeta.PlainHashes(c)[0], runtimemeta.ExpectedEnvHash(pod, c)
		set.Containers = append(set.Containers, e)
	}
	return set
}

// update records an update in place of containers, and takes the pod out of its services.
func update(t *testing.T, pod *corev1.Pod, edit func(*kruise.InPlaceUpdateState), names ...string) {
	t.Helper()
	s := &kruise.InPlaceUpdateState{
		Revision: "web-2", UpdateTimestamp: began, UpdateEnvFromMetadata: true, LastContainerStatuses: map[string]kruise.InPlaceUpdateContainerStatus{},
		ContainerBatchesRecord: []kruise.InPlaceUpdateContainerBatch{{Timestamp: began, Containers: names}},
	}
	for _, name := range names {
		s.LastContainerStatuses[name] = kruise.InPlaceUpdateContainerStatus{ContainerID: "containerd://" + name}
	}
	if edit != nil {
		edit(s)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	pod.Annotations[kruise.InPlaceUpdateStateKey] = string(raw)
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
}

func TestWhichContainersAreRestarted(t *testing.T) {
	paint := func(pod *corev1.Pod, names ...string) {
		for _, name := range names {
			pod.Annotations[name] = "red"
		}
	}
	for name, tc := range map[string]struct {
		edit     func(t *testing.T, pod *corev1.Pod, set *kruise.RuntimeContainerMetaSet)
		want     []string
		patience time.Duration // of those
	}{
		"a container whose annotation changed": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			update(t, pod, nil, "a")
		}, []string{"a"}, settling},
		"all of a batch": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a", "b")
			update(t, pod, nil, "a", "b")
		}, []string{"a", "b"}, settling},
		"as OpenKruise recorded it": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			update(t, pod, func(s *kruise.InPlaceUpdateState) { s.LastContainerStatuses = nil }, "a")
		}, []string{"a"}, settling},
		"what an earlier update left": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			update(t, pod, func(s *kruise.InPlaceUpdateState) {
				s.UpdateEnvFromMetadata = false
				s.LastContainerStatuses["a"] = kruise.InPlaceUpdateContainerStatus{ContainerID: "containerd://a"}
			}, "b")
		}, []string{"a"}, settling},
		"none while the pod is in its services": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			update(t, pod, nil, "a")
			pod.Status.Conditions[0].Status = corev1.ConditionTrue
		}, nil, 0},
		"none of a pod without the condition": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			update(t, pod, nil, "a")
			pod.Status.Conditions = nil
		}, nil, 0},
		"none in the grace period": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			update(t, pod, nil, "a")
			pod.Annotations[kruise.InPlaceUpdateGraceKey] = "{}"
		}, nil, 0},
		"none without an update": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			update(t, pod, nil, "a")
			delete(pod.Annotations, kruise.InPlaceUpdateStateKey)
		}, nil, 0},
		"none of an update that cannot be read": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			update(t, pod, nil, "a")
			pod.Annotations[kruise.InPlaceUpdateStateKey] = "{"
		}, nil, 0},
		"not one whose annotation another client changed": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a", "b")
			update(t, pod, nil, "a")
		}, []string{"a"}, settling},
		"not one that waits for its batch with another value": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a", "b")
			update(t, pod, func(s *kruise.InPlaceUpdateState) {
				s.NextContainerRefMetadata = map[string]kruise.ContainerRefMetadata{"b": {Annotations: map[string]string{"b": "red"}}}
			}, "a", "b")
		}, []string{"a"}, settling},
		"not one that waits for its batch with another image": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a", "b")
			update(t, pod, func(s *kruise.InPlaceUpdateState) { s.NextContainerImages = map[string]string{"b": "web:2"} }, "a", "b")
		}, []string{"a"}, settling},
		"not one that runs with the new value": {func(t *testing.T, pod *corev1.Pod, set *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			*set = toldOf(pod)
			update(t, pod, nil, "a")
		}, nil, 0},
		"not one whose env is not known": {func(t *testing.T, pod *corev1.Pod, set *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			update(t, pod, nil, "a")
			set.Containers[0].Hashes.ExtractedEnvFromMetadataHash = 0
		}, nil, 0},
		"not one that nothing is known of": {func(t *testing.T, pod *corev1.Pod, set *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			update(t, pod, nil, "a")
			set.Containers = nil
		}, nil, 0},
		"not one that does not run": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			update(t, pod, nil, "a")
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}, nil, 0},
		"not a run that the kubelet has not told of": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			update(t, pod, nil, "a")
			pod.Status.ContainerStatuses[0].ContainerID = "containerd://older"
		}, nil, 0},
		"one whose image changes too is the kubelet's for long": {func(t *testing.T, pod *corev1.Pod, _ *kruise.RuntimeContainerMetaSet) {
			paint(pod, "a")
			pod.Spec.Containers[0].Image = "web:2"
			update(t, pod, nil, "a")
		}, []string{"a"}, time.Minute}, // 30 s of grace and 30 s more
	} {
		t.Run(name, func(t *testing.T) {
			pod := colored("a", "b")
			set := toldOf(pod)
			tc.edit(t, pod, &set)
			var names []string
			for _, d := range outdatedContainers(pod, set) {
				names = append(names, d.name)
				if d.patience != tc.patience {
					t.Errorf("%s is left alone for %s, want %s", d.name, d.patience, tc.patience)
				}
			}
			if !slices.Equal(names, tc.want) {
				t.Errorf("got %v, want %v", names, tc.want)
			}
		})
	}
}
