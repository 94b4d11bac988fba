// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
)

type reference struct {
	Sets []kruise.SidecarSet
	Pods []corev1.Pod
}

// openKruise is what OpenKruise left in a cluster: two SidecarSets, one of them hot, and pods that have both.
func openKruise(t *testing.T) reference {
	t.Helper()
	raw, err := os.ReadFile("testdata/openkruise.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out reference
	if err := yaml.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Sets) != 2 || len(out.Pods) == 0 {
		t.Fatalf("%d SidecarSets and %d pods", len(out.Sets), len(out.Pods))
	}
	return out
}

func TestHashesAreThoseOfOpenKruise(t *testing.T) {
	for _, set := range openKruise(t).Sets {
		got, err := podmeta.HashesOf(&set.Spec)
		want := podmeta.Hashes{Hash: set.Annotations[kruise.SidecarSetHashKey], WithoutImage: set.Annotations[kruise.SidecarSetHashWithoutImageKey]}
		if err != nil || got != want {
			t.Errorf("%s: %v, %+v, want %+v", set.Name, err, got, want)
		}
	}
}

// A pod that is taken apart and put together again is what it was: which containers, in which order, with which variables,
// mounts and annotations. The token of the service account is left out: API servers mount it, after the webhook as before.
func TestPodsAreThoseOfOpenKruise(t *testing.T) {
	ref := openKruise(t)
	for i := range ref.Pods {
		want := &ref.Pods[i]
		withoutToken(&want.Spec)
		t.Run(want.Name, func(t *testing.T) {
			at := injectedAt(t, want)
			pod := bare(want)
			if err := ApplySets(pod, inOrder(ref.Sets, want), Options{Now: at}); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want.Annotations, pod.Annotations); d != "" {
				t.Errorf("annotations: %s", d)
			}
			if !equality.Semantic.DeepEqual(want.Spec, pod.Spec) {
				t.Errorf("spec: %s", cmp.Diff(want.Spec, pod.Spec))
			}
		})
	}
}

// inOrder are the SidecarSets in the order in which OpenKruise put them in, which is any.
func inOrder(sets []kruise.SidecarSet, pod *corev1.Pod) []Set {
	out := make([]Set, len(sets))
	for i := range sets {
		out[i] = Set{Name: sets[i].Name, Spec: &sets[i].Spec}
	}
	at := func(s Set) int {
		return slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return strings.HasPrefix(c.Name, s.Spec.Containers[0].Name) })
	}
	slices.SortFunc(out, func(a, b Set) int { return at(a) - at(b) })
	return out
}

func injectedAt(t *testing.T, pod *corev1.Pod) time.Time {
	t.Helper()
	entries, err := podmeta.Read(pod, kruise.SidecarSetHashKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		return entry.UpdateTimestamp.Time
	}
	t.Fatal("the pod has no SidecarSet")
	return time.Time{}
}

// bare is a pod before anything was put in.
func bare(pod *corev1.Pod) *corev1.Pod {
	out := pod.DeepCopy()
	out.Annotations = nil
	out.Spec.Containers = slices.DeleteFunc(out.Spec.Containers, func(c corev1.Container) bool { return podmeta.IsInjected(&c) })
	out.Spec.Volumes = slices.DeleteFunc(out.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "log" })
	return out
}

func withoutToken(spec *corev1.PodSpec) {
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, "kube-api-access") })
	for i := range spec.Containers {
		spec.Containers[i].VolumeMounts = slices.DeleteFunc(spec.Containers[i].VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.Name, "kube-api-access") })
	}
}
