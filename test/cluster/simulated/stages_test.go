// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/test/cluster/state"
)

// functions plays those of KWOK and of sprig that the template uses.
func functions() template.FuncMap {
	return template.FuncMap{
		"Now":   func() string { return "2026-01-01T00:01:00Z" },
		"Quote": func(v any) string { return strconv.Quote(fmt.Sprint(v)) },
		"dict": func(pairs ...any) map[string]any {
			made := map[string]any{}
			for i := 0; i+1 < len(pairs); i += 2 {
				made[pairs[i].(string)] = pairs[i+1]
			}
			return made
		},
		"list": func(items ...any) []any { return items },
		"set": func(d map[string]any, key string, value any) map[string]any {
			d[key] = value
			return d
		},
		"get": func(d map[string]any, key string) any {
			if value, ok := d[key]; ok {
				return value
			}
			return ""
		},
		"hasKey":          func(d map[string]any, key string) bool { _, ok := d[key]; return ok },
		"add1":            func(n int) int { return n + 1 },
		"atoi":            func(s string) int { n, _ := strconv.Atoi(s); return n },
		"toString":        func(v any) string { return fmt.Sprint(v) },
		"toJson":          func(v any) string { data, _ := json.Marshal(v); return string(data) },
		"contains":        func(part, s string) bool { return strings.Contains(s, part) },
		"sha256sum":       func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) },
		"regexReplaceAll": func(pattern, s, by string) string { return regexp.MustCompile(pattern).ReplaceAllString(s, by) },
	}
}

// play renders the status of a pod, and merges it as the API server would.
func play(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	encoded, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var data any
	decoder := json.NewDecoder(strings.NewReader(string(encoded)))
	decoder.UseNumber()
	if err := decoder.Decode(&data); err != nil {
		t.Fatal(err)
	}
	parsed, err := template.New("").Funcs(functions()).Parse(statusTemplate)
	if err != nil {
		t.Fatal(err)
	}
	var rendered strings.Builder
	if err := parsed.Execute(&rendered, data); err != nil {
		t.Fatal(err)
	}
	var status corev1.PodStatus
	if err := yaml.UnmarshalStrict([]byte(rendered.String()), &status); err != nil {
		t.Fatalf("%v\n%s", err, rendered.String())
	}
	after := pod.DeepCopy()
	for _, condition := range pod.Status.Conditions {
		if find(status.Conditions, condition.Type) == nil {
			status.Conditions = append(status.Conditions, condition)
		}
	}
	after.Status = status
	return after
}

func find(conditions []corev1.PodCondition, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

func pod(gates ...corev1.PodConditionType) *corev1.Pod {
	made := &corev1.Pod{}
	made.UID, made.Generation = "uid", 3
	made.Spec.Containers = []corev1.Container{{Name: "one", Image: "nginx:1"}, {Name: "two", Image: "localhost:5000/a/b:same-digest-a"}}
	for _, gate := range gates {
		made.Spec.ReadinessGates = append(made.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: gate})
	}
	return made
}

func TestANewPodIsReady(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	made := pod()
	made.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "a:1"}, {Name: "sidecar", Image: "b:1", RestartPolicy: &always}}
	status := play(t, made).Status
	if ready := find(status.Conditions, corev1.PodReady); ready == nil || ready.Status != corev1.ConditionTrue {
		t.Errorf("ready: %+v", ready)
	}
	if status.ObservedGeneration != 3 || status.PodIP != "" {
		t.Errorf("got %+v", status)
	}
	for _, container := range status.ContainerStatuses {
		if !container.Ready || container.State.Running == nil || container.RestartCount != 0 || container.ContainerID == "" {
			t.Errorf("got %+v", container)
		}
	}
	if got := status.ContainerStatuses[1].ImageID; !strings.HasPrefix(got, "localhost:5000/a/b@sha256:") {
		t.Errorf("the image ID is %s", got)
	}
	if init := status.InitContainerStatuses; init[0].State.Terminated == nil || init[1].State.Running == nil {
		t.Errorf("got %+v", init)
	}
}

func TestReadyFollowsTheGates(t *testing.T) {
	gate := corev1.PodConditionType("InPlaceUpdateReady")
	made := play(t, pod(gate))
	if ready := find(made.Status.Conditions, corev1.PodReady); ready.Status != corev1.ConditionFalse || ready.Reason != "ReadinessGatesNotReady" {
		t.Errorf("with the gate unset: %+v", ready)
	}
	for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
		made.Status.Conditions = append([]corev1.PodCondition{{Type: gate, Status: status}},
			*find(made.Status.Conditions, corev1.PodReady), *find(made.Status.Conditions, corev1.ContainersReady))
		made = play(t, made)
		if ready := find(made.Status.Conditions, corev1.PodReady); ready.Status != status {
			t.Errorf("with the gate %s: %+v", status, ready)
		}
		if containers := find(made.Status.Conditions, corev1.ContainersReady); containers.Status != corev1.ConditionTrue {
			t.Errorf("with the gate %s: %+v", status, containers)
		}
	}
}

func TestOnlyAChangedContainerRestarts(t *testing.T) {
	before := play(t, pod())
	earlier := metav1.NewTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	find(before.Status.Conditions, corev1.PodReady).LastTransitionTime = earlier
	same := play(t, before)
	if since := find(same.Status.Conditions, corev1.PodReady).LastTransitionTime; !since.Equal(&earlier) {
		t.Error("readiness began anew without a reason")
	}
	changed := before.DeepCopy()
	changed.Spec.Containers[0].Image = "nginx:2"
	after := play(t, changed)
	one, two := after.Status.ContainerStatuses[0], after.Status.ContainerStatuses[1]
	was := before.Status.ContainerStatuses[0]
	if one.RestartCount != 1 || one.ContainerID == was.ContainerID || one.ImageID == was.ImageID || one.Image != "nginx:2" {
		t.Errorf("the changed container: %+v", one)
	}
	if one.LastTerminationState.Terminated == nil || one.LastTerminationState.Terminated.ContainerID != was.ContainerID {
		t.Errorf("the changed container ended as %+v", one.LastTerminationState)
	}
	if two.RestartCount != 0 || two.ContainerID != before.Status.ContainerStatuses[1].ContainerID {
		t.Errorf("the other container: %+v", two)
	}
	if since := find(after.Status.Conditions, corev1.PodReady).LastTransitionTime; since.Equal(&earlier) {
		t.Error("a restart does not begin readiness anew")
	}
	if again := play(t, after); again.Status.ContainerStatuses[0].RestartCount != 1 {
		t.Error("it restarts again by itself")
	}
}

func TestTagsOfTheSameDigest(t *testing.T) {
	before := play(t, pod())
	changed := before.DeepCopy()
	changed.Spec.Containers[1].Image = "localhost:5000/a/b:same-digest-b"
	after := play(t, changed).Status.ContainerStatuses[1]
	if after.ImageID != before.Status.ContainerStatuses[1].ImageID || after.RestartCount != 1 {
		t.Errorf("got %+v", after)
	}
	changed.Spec.Containers[1].Image = "a/b@sha256:abc"
	if got := play(t, changed).Status.ContainerStatuses[1].ImageID; got != "a/b@sha256:abc" {
		t.Errorf("an image given by digest has the ID %s", got)
	}
}

func TestRequestsAtOnceGrowWithTheNodes(t *testing.T) {
	for nodes, want := range map[int][]string{
		3:    {"podPlayStageParallelism: 16\n", "nodePlayStageParallelism: 4\n", "nodeLeaseParallelism: 4\n"},
		1000: {"podPlayStageParallelism: 62\n", "nodePlayStageParallelism: 40\n", "nodeLeaseParallelism: 40\n"},
	} {
		got := configuration(&state.State{Simulated: nodes})
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("%d nodes: %q is missing", nodes, line)
			}
		}
	}
}

func TestStagesAreYAML(t *testing.T) {
	rendered := renderStages()
	if strings.Contains(rendered, "@STATUS@") {
		t.Error("the status template is not everywhere")
	}
	documents := strings.Split(rendered, "\n---\n")
	if len(documents) != 7 {
		t.Errorf("there are %d stages", len(documents))
	}
	for _, document := range documents {
		var stage struct {
			Kind string
			Spec struct {
				Next struct {
					StatusTemplate string
					Delete         bool
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &stage); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if stage.Kind != "Stage" || (stage.Spec.Next.StatusTemplate == "") != stage.Spec.Next.Delete {
			t.Errorf("got %+v of\n%s", stage, document)
		}
	}
}
