// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
)

// agented is a pod with the readiness gate whose container main is in an update of its env
// alone, with what the node agent says of a run of it: by which color and image it was
// started. The status reports a run as well.
func agented(t *testing.T, run string, edits ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	p := updating(func(p *corev1.Pod) {
		p.Spec.Containers[0].Image = "web:1"
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "COLOR", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['color']"}}}}
		p.Annotations["color"] = "red"
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
		p.Status.Conditions = []corev1.PodCondition{{Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionFalse}}
		p.Status.ContainerStatuses[0].ContainerID = run
	}, func(s *kruise.InPlaceUpdateState) {
		s.UpdateEnvFromMetadata = true
		s.LastContainerStatuses["main"] = kruise.InPlaceUpdateContainerStatus{ContainerID: "c1"}
	})
	for _, edit := range edits {
		edit(p)
	}
	return p
}

// tells writes what the node agent says of a run of main.
func tells(t *testing.T, run, color, image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		t.Helper()
		c := p.Spec.Containers[0].DeepCopy()
		c.Image = image
		e := kruise.RuntimeContainerMeta{Name: "main", ContainerID: run}
		e.Hashes.PlainHash = runtimemeta.PlainHashes(c)[0]
		if color != "" {
			e.Hashes.ExtractedEnvFromMetadataHash = runtimemeta.ActualEnvHash(c, map[string]string{"COLOR": color})
		}
		raw, err := json.Marshal(kruise.RuntimeContainerMetaSet{Containers: []kruise.RuntimeContainerMeta{e}})
		if err != nil {
			t.Fatal(err)
		}
		p.Annotations[kruise.RuntimeContainerMetaKey] = string(raw)
	}
}

func TestTheNodeAgentTellsThatAnUpdateIsComplete(t *testing.T) {
	stale := func(p *corev1.Pod) { p.Status.ObservedGeneration = 1 }
	ended := func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = corev1.ContainerState{} }
	gateless := func(p *corev1.Pod) { p.Spec.ReadinessGates, p.Status.Conditions = nil, nil }
	open := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }
	const waits = "container main has not restarted for the labels and annotations that its env reads"
	for name, tc := range map[string]struct {
		pod *corev1.Pod
		why string
	}{
		"the old run, with the old value":                         {agented(t, "c1", tells(t, "c1", "blue", "web:1")), waits},
		"the new run, with the new value":                         {agented(t, "c2", tells(t, "c2", "red", "web:1")), ""},
		"a new run with the old value":                            {agented(t, "c2", tells(t, "c2", "blue", "web:1")), waits},
		"a new run that the agent has not come to yet":            {agented(t, "c2", tells(t, "c1", "blue", "web:1")), waits},
		"a new run that the kubelet has not told of yet":          {agented(t, "c1", tells(t, "c2", "red", "web:1")), waits},
		"the old run has the value again: the change was undone":  {agented(t, "c1", tells(t, "c1", "red", "web:1")), ""},
		"the new run has ended":                                   {agented(t, "c2", tells(t, "c2", "red", "web:1"), ended), waits},
		"the kubelet has not seen the pod as it is":               {agented(t, "c2", tells(t, "c2", "red", "web:1"), stale), waits},
		"a new run, and the agent does not know its env":          {agented(t, "c2", tells(t, "c2", "", "web:1")), ""},
		"the old run, and the agent does not know its env":        {agented(t, "c1", tells(t, "c1", "", "web:1")), waits},
		"a new run, and no agent writes on the pod":               {agented(t, "c2"), ""},
		"the old run, and no agent writes on the pod":             {agented(t, "c1"), waits},
		"complete, and another client changed the value":          {agented(t, "c2", tells(t, "c2", "blue", "web:1"), open), ""},
		"without a gate a new run counts, whatever it runs with":  {agented(t, "c2", tells(t, "c2", "blue", "web:1"), gateless), ""},
		"without a gate the old run does not, for none ends it":   {agented(t, "c1", tells(t, "c1", "blue", "web:1"), gateless), waits},
		"what the agent wrote cannot be read, and the run is new": {agented(t, "c2", func(p *corev1.Pod) { p.Annotations[kruise.RuntimeContainerMetaKey] = "{" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if why := IncompleteReason(tc.pod); why != tc.why {
				t.Errorf("Incomplete says %q, want %q", why, tc.why)
			}
		})
	}
}

// Two tags of one image: neither its ID nor, with some runtimes, its name changes.
func TestTheNodeAgentTellsOfTheNewImage(t *testing.T) {
	sameDigest := func(p *corev1.Pod) {
		s, err := DecodeState(p)
		if err != nil {
			t.Fatal(err)
		}
		s.LastContainerStatuses["main"] = kruise.InPlaceUpdateContainerStatus{ImageID: "i1", ContainerID: "c1"}
		if err := setState(p, s); err != nil {
			t.Fatal(err)
		}
		p.Spec.Containers[0].Image = "web:2"
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		done bool
	}{
		"the run was started by the new tag":       {agented(t, "c1", sameDigest, tells(t, "c1", "red", "web:2")), true},
		"the run was started by the old tag":       {agented(t, "c1", sameDigest, tells(t, "c1", "red", "web:1")), false},
		"another run was started by the new tag":   {agented(t, "c1", sameDigest, tells(t, "c2", "red", "web:2")), false},
		"the kubelet has not seen the new tag yet": {agented(t, "c1", sameDigest, tells(t, "c1", "red", "web:2"), func(p *corev1.Pod) { p.Status.ObservedGeneration = 1 }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if why := IncompleteReason(tc.pod); (why == "") != tc.done {
				t.Errorf("Incomplete says %q, want done %v", why, tc.done)
			}
		})
	}
}
