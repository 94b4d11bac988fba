// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func start(t testing.TB, w *world, d Difference, grace int32) (*corev1.Pod, time.Duration) {
	t.Helper()
	spec, err := d.UpdateSpec("web-2", grace, true)
	if err != nil {
		t.Fatal(err)
	}
	pod, left, err := w.u.Start(context.Background(), w.pod(), spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pod, left
}

func TestAnImageIsChangedInTwoWrites(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	written, _ := start(t, w, between(t, from, to), 0)
	if w.writes != 2 {
		t.Errorf("%d writes, want 2", w.writes)
	}
	got := w.pod()
	if written.ResourceVersion != got.ResourceVersion {
		t.Error("what is returned is not what was written last")
	}
	if got.Spec.Containers[0].Image != "main:2" || got.Labels[revisionLabel] != "web-2" || got.Labels["pod-template-hash"] != "2" {
		t.Errorf("the pod is %v %v", got.Spec.Containers[0].Image, got.Labels)
	}
	if diff := cmp.Diff([]string{"InPlaceUpdateReady=False StartInPlaceUpdate", "Ready=False ReadinessGatesNotReady"}, conditions(got)); diff != "" {
		t.Error(diff)
	}
	s, err := DecodeState(got)
	if err != nil || s.Revision != "web-2" || !s.UpdateImages || s.UpdateResources || len(s.LastContainerStatuses) != 1 || s.LastContainerStatuses["main"].ContainerID != "c1" {
		t.Errorf("the record is %+v, %v", s, err)
	}
	if len(s.ContainerBatchesRecord) != 1 || !slices.Equal(s.ContainerBatchesRecord[0].Containers, []string{"main"}) {
		t.Errorf("the batches are %+v", s.ContainerBatchesRecord)
	}
	w.finish()
	if !WantsReady(w.pod()) {
		t.Error("the gate is not to be opened")
	}
	if _, err := w.u.MarkReady(context.Background(), w.pod(), nil); err != nil {
		t.Fatal(err)
	}
	if WantsReady(w.pod()) {
		t.Error("the gate is still to be opened")
	}
	if FindCondition(w.pod(), corev1.PodReady).Status != corev1.ConditionFalse {
		t.Error("Ready is the kubelet's to set")
	}
}

// A pod that is to stay ready has its image changed by one write, and nothing is to be opened
// afterwards.
func TestAPodStaysReady(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	spec, err := between(t, from, to).UpdateSpec("web-2", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.u.StartReady(t.Context(), w.pod(), spec, nil); err != nil {
		t.Fatal(err)
	}
	got := w.pod()
	if c := FindCondition(got, kruise.InPlaceUpdateReady); w.writes != 1 || got.Spec.Containers[0].Image != "main:2" || c.Status != corev1.ConditionTrue {
		t.Errorf("after %d writes the image is %s and the gate %+v", w.writes, got.Spec.Containers[0].Image, c)
	}
	if IncompleteReason(got) == "" {
		t.Error("the update is complete already")
	}
	w.finish()
	if message := IncompleteReason(w.pod()); message != "" || WantsReady(w.pod()) {
		t.Errorf("the update is not complete (%s), or the gate is to be opened", message)
	}
}

func TestMetadataAloneIsOneWriteAndLeavesThePodReady(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Labels = map[string]string{"tier": "gold"}
	to.Annotations = map[string]string{"note": "x"}
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	start(t, w, between(t, from, to), 0)
	got := w.pod()
	if w.writes != 1 || FindCondition(got, corev1.PodReady).Status != corev1.ConditionTrue {
		t.Errorf("%d writes, %v", w.writes, conditions(got))
	}
	if _, ok := got.Labels["app"]; ok || got.Labels["tier"] != "gold" || got.Labels["instance"] != "a" || got.Annotations["note"] != "x" {
		t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
	}
	if why := IncompleteReason(got); why != "" {
		t.Errorf("it is not complete at once: %s", why)
	}
}

func TestAPodWithoutTheGateIsChangedInOneWrite(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	w := newWorld(t, podOf(from, false))
	start(t, w, between(t, from, to), 0)
	if w.writes != 1 {
		t.Errorf("%d writes, want 1", w.writes)
	}
}

func TestEqualTemplatesOnlyChangeTheLabel(t *testing.T) {
	w := newWorld(t, podOf(twoContainers(), true))
	w.kubelet()
	start(t, w, between(t, twoContainers(), twoContainers()), 0)
	got := w.pod()
	if w.writes != 1 || got.Labels[revisionLabel] != "web-2" || IncompleteReason(got) != "" {
		t.Errorf("%d writes, label %s, %q", w.writes, got.Labels[revisionLabel], IncompleteReason(got))
	}
}

func TestBatchesWaitUntilTheContainersBeforeThemAreReady(t *testing.T) {
	template := func(version string) *corev1.PodTemplateSpec {
		p := &corev1.PodTemplateSpec{Spec: barriered("a/p_1", "b/p_9", "c").Spec}
		for i := range p.Spec.Containers {
			p.Spec.Containers[i].Image = p.Spec.Containers[i].Name + ":" + version
		}
		return p
	}
	w := newWorld(t, podOf(template("1"), true))
	w.kubelet()
	start(t, w, between(t, template("1"), template("2")), 0)
	got := w.pod()
	if s, _ := DecodeState(got); !slices.Equal(s.PreCheckBeforeNext.ContainersRequiredReady, []string{"b", "c"}) || s.NextContainerImages["a"] != "a:2" {
		t.Errorf("the record is %+v", s)
	}
	if got.Spec.Containers[0].Image != "a:1" || got.Spec.Containers[1].Image != "b:2" || got.Spec.Containers[2].Image != "c:2" {
		t.Error("not the containers of the first batch were changed")
	}
	w.kubelet()
	notReady := w.pod()
	statusOf(notReady, "c").Ready = false
	if err := w.client.Status().Update(context.Background(), notReady); err != nil {
		t.Fatal(err)
	}
	if next, _, _ := w.u.NextStep(w.pod()); next != Nothing {
		t.Errorf("%q, though a container is not ready", next)
	}
	w.kubelet()
	if next, _, _ := w.u.NextStep(w.pod()); next != Batch {
		t.Errorf("%q, though all are ready", next)
	}
	w.finish()
	got = w.pod()
	s, _ := DecodeState(got)
	if got.Spec.Containers[0].Image != "a:2" || len(s.ContainerBatchesRecord) != 2 || s.PreCheckBeforeNext != nil {
		t.Errorf("image %s, record %+v", got.Spec.Containers[0].Image, s)
	}
}

func TestBatchesKnowContainersThatHaveEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		policy  corev1.RestartPolicy
		code    int32
		want    NextStep
		trouble string
	}{
		"one that has succeeded is not waited for":    {corev1.RestartPolicyNever, 0, Batch, ""},
		"one that has failed for good keeps the next": {corev1.RestartPolicyNever, 3, Nothing, "container main has ended with exit code 3 and is not started again, so the containers that are to be updated after it are not"},
		"one that is started again is waited for":     {corev1.RestartPolicyOnFailure, 3, Nothing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := updating(func(p *corev1.Pod) {
				p.Spec.RestartPolicy = tc.policy
				st := &p.Status.ContainerStatuses[0]
				st.Image, st.ImageID, st.ContainerID = "web:2", "i2", "c2"
				st.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: tc.code}}
			}, func(s *kruise.InPlaceUpdateState) {
				s.NextContainerImages = map[string]string{"side": "side:2"}
				s.PreCheckBeforeNext = &kruise.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: []string{"main"}}
			})
			next, _, err := Updater{Now: time.Now}.NextStep(pod)
			if trouble := BatchTrouble(pod); err != nil || next != tc.want || trouble != tc.trouble {
				t.Errorf("%q with trouble %q (%v), want %q with %q", next, trouble, err, tc.want, tc.trouble)
			}
		})
	}
}

func TestWhatRestartsContainers(t *testing.T) {
	cpu := corev1.ResourceList{"cpu": resource.MustParse("2")}
	policy := func(name corev1.ResourceName, p corev1.ResourceResizeRestartPolicy) *corev1.Pod {
		pod := barriered("a", "b")
		pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: name, RestartPolicy: p}}
		return pod
	}
	sized := func(container string, r corev1.ResourceRequirements) *kruise.UpdateSpec {
		return &kruise.UpdateSpec{ContainerResources: map[string]corev1.ResourceRequirements{container: r}}
	}
	tests := map[string]struct {
		pod  *corev1.Pod
		spec *kruise.UpdateSpec
		want bool
	}{
		"an image does":                            {barriered("a"), &kruise.UpdateSpec{ContainerImages: images("a")}, true},
		"what an env reads does":                   {barriered("a"), &kruise.UpdateSpec{ContainerRefMetadata: map[string]kruise.ContainerRefMetadata{"a": reads("k")}}, true},
		"metadata does not":                        {barriered("a"), &kruise.UpdateSpec{MetaDataPatch: []byte("{}")}, false},
		"nothing does not":                         {barriered("a"), &kruise.UpdateSpec{}, false},
		"a limit without a policy does not":        {barriered("a", "b"), sized("a", corev1.ResourceRequirements{Limits: cpu}), false},
		"a limit whose policy says so does":        {policy("cpu", corev1.RestartContainer), sized("a", corev1.ResourceRequirements{Limits: cpu}), true},
		"a request whose policy says so does":      {policy("cpu", corev1.RestartContainer), sized("a", corev1.ResourceRequirements{Requests: cpu}), true},
		"the policy of another resource does not":  {policy("memory", corev1.RestartContainer), sized("a", corev1.ResourceRequirements{Limits: cpu}), false},
		"the policy of another container does not": {policy("cpu", corev1.RestartContainer), sized("b", corev1.ResourceRequirements{Limits: cpu}), false},
		"a policy that needs no restart does not":  {policy("cpu", corev1.NotRequired), sized("a", corev1.ResourceRequirements{Limits: cpu}), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := RestartsContainers(tc.pod, tc.spec); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestBothGatesAreOpenedInOneWrite(t *testing.T) {
	pod := podOf(twoContainers(), true)
	pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: kruise.KruisePodReady})
	pod.Status.Conditions = nil
	w := newWorld(t, pod)
	if !WantsReady(w.pod()) {
		t.Fatal("the gates are not to be opened")
	}
	if _, err := w.u.MarkReady(context.Background(), w.pod(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"InPlaceUpdateReady=True ", "KruisePodReady=True "}, conditions(w.pod())); diff != "" || w.writes != 1 || WantsReady(w.pod()) {
		t.Errorf("%d writes, %s", w.writes, diff)
	}
}
