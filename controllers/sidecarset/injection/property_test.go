// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

// A pod that is valid stays so with the containers of SidecarSets that are valid, or it is refused for a name that two
// containers would have. Nothing of its own is lost, but for containers of the same name.
func TestAValidPodStaysValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		if problems := problemsOf(pod); problems != "" {
			t.Skip(problems)
		}
		sets := rapid.SliceOfNDistinct(rapid.Custom(drawSet), 1, 3, func(s Set) string { return s.Name }).Draw(t, "sets")
		for i := range sets {
			if problems := problemsOf(alone(&sets[i])); problems != "" {
				t.Skip(problems)
			}
		}
		before := pod.DeepCopy()
		err := ApplySets(pod, sets, Options{Now: time.Unix(1_700_000_000, 0), SortByName: rapid.Bool().Draw(t, "sorted")})
		if err != nil {
			told := slices.ContainsFunc([]string{"has a container", "has a volume of that name", "merging it with that of the pod"}, func(why string) bool {
				return strings.Contains(err.Error(), why)
			})
			if !told {
				t.Fatalf("it is refused: %v", err)
			}
			return
		}
		if problems := problemsOf(pod); problems != "" {
			t.Fatalf("the pod is not valid any more: %s", problems)
		}
		nothingLost(t, before, pod, sets)
	})
}

func nothingLost(t *rapid.T, before, pod *corev1.Pod, sets []Set) {
	for _, own := range before.Spec.Containers {
		if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == own.Name }) {
			t.Fatalf("the pod has lost its container %s", own.Name)
		}
	}
	for _, set := range sets {
		if !slices.Contains(podmeta.InjectedSets(pod), set.Name) {
			t.Fatalf("the pod is not marked with %s", set.Name)
		}
		for i := range set.Spec.Containers {
			name := set.Spec.Containers[i].Name
			if podmeta.IsHot(&set.Spec.Containers[i]) {
				name, _ = podmeta.HotPair(name)
			}
			at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
			if at < 0 || !podmeta.IsInjected(&pod.Spec.Containers[at]) {
				t.Fatalf("the pod lacks the container %s of %s", name, set.Name)
			}
		}
	}
}

func problemsOf(pod *corev1.Pod) string {
	template := &corev1.PodTemplateSpec{ObjectMeta: *pod.ObjectMeta.DeepCopy(), Spec: *pod.Spec.DeepCopy()}
	podtemplate.Settings{}.ApplyDefaults(template)
	var out []string
	for _, err := range podtemplate.Validate(template, nil, nil) {
		out = append(out, err.Error())
	}
	return strings.Join(out, "\n")
}

// alone is a pod that has nothing but what a SidecarSet gives it, and a container of its own.
func alone(set *Set) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: set.Spec.Volumes, Containers: []corev1.Container{{Name: "its-own", Image: "web"}}}}
	for i := range set.Spec.InitContainers {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, *set.Spec.InitContainers[i].Container.DeepCopy())
	}
	for i := range set.Spec.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, *set.Spec.Containers[i].Container.DeepCopy())
	}
	return pod
}

func drawPod(t *rapid.T) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Labels = map[string]string{"source": rapid.SampledFrom([]string{"a", "b", "none"}).Draw(t, "label")}
	pod.Annotations = map[string]string{}
	for _, key := range []string{"note", kruise.SidecarSetHashKey, kruise.SidecarSetInjectedListKey, kruise.SidecarSetWorkingHotUpgradeKey} {
		if rapid.IntRange(0, 3).Draw(t, key) == 0 {
			pod.Annotations[key] = rapid.SampledFrom([]string{"", "x", "{}", `{"a":"b"}`, "null"}).Draw(t, "value")
		}
	}
	pod.Spec.Volumes = drawVolumes(t)
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "a-1"}), 1, 4, rapid.ID[string]).Draw(t, "names")
	inits := rapid.IntRange(0, len(names)-1).Draw(t, "inits")
	for i, name := range names {
		c := drawContainer(t, name)
		if i < inits {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
			continue
		}
		if rapid.IntRange(0, 9).Draw(t, "injected") == 0 {
			c.Env = append(c.Env, corev1.EnvVar{Name: kruise.SidecarInjectedEnv, Value: "true"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

// drawVolumes are volumes of three names, of which one is a claim and one may be.
func drawVolumes(t *rapid.T) (out []corev1.Volume) {
	for _, name := range []string{"v", "w", "x"} {
		volume := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
		if name == "x" || name == "w" && rapid.Bool().Draw(t, "claim") {
			volume.VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
		}
		out = append(out, volume)
	}
	return out
}

func drawContainer(t *rapid.T, name string) corev1.Container {
	c := corev1.Container{Name: name, Image: rapid.SampledFrom([]string{"web", "web:1"}).Draw(t, "image")}
	if rapid.IntRange(0, 3).Draw(t, "device") == 0 {
		c.VolumeDevices = []corev1.VolumeDevice{{Name: rapid.SampledFrom([]string{"x", "x", "w"}).Draw(t, "claim"), DevicePath: rapid.SampledFrom([]string{"/a", "/dev/x"}).Draw(t, "path")}}
	}
	for _, path := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/a", "/b", "/c"}), 0, 2, rapid.ID[string]).Draw(t, "paths") {
		mount := corev1.VolumeMount{Name: rapid.SampledFrom([]string{"v", "w"}).Draw(t, "volume"), MountPath: path}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			mount.SubPathExpr = rapid.SampledFrom([]string{"$(ONE)", "$(TWO)/$(ONE)", "$$(ONE)"}).Draw(t, "expression")
		case 1:
			mount.MountPropagation = ptr.To(corev1.MountPropagationBidirectional)
			c.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		}
		c.VolumeMounts = append(c.VolumeMounts, mount)
	}
	for _, variable := range rapid.SliceOfN(rapid.SampledFrom([]string{"ONE", "TWO", "THREE"}), 0, 3).Draw(t, "env") {
		c.Env = append(c.Env, corev1.EnvVar{Name: variable, Value: name})
	}
	return c
}

func drawSet(t *rapid.T) Set {
	spec := &kruise.SidecarSetSpec{Volumes: drawVolumes(t)}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "s", "t", "u"}), 1, 3, rapid.ID[string]).Draw(t, "containers")
	for _, name := range names {
		c := kruise.SidecarContainer{
			Container:         drawContainer(t, name),
			PodInjectPolicy:   rapid.SampledFrom([]kruise.PodInjectPolicyType{"", kruise.BeforeAppContainerType, kruise.AfterAppContainerType}).Draw(t, "place"),
			ShareVolumePolicy: kruise.ShareVolumePolicy{Type: rapid.SampledFrom([]kruise.ShareVolumePolicyType{"", kruise.ShareVolumePolicyEnabled}).Draw(t, "share")},
		}
		if rapid.Bool().Draw(t, "devices") {
			c.ShareVolumeDevicePolicy = &kruise.ShareVolumePolicy{Type: kruise.ShareVolumePolicyEnabled}
		}
		if rapid.Bool().Draw(t, "transfer") {
			from := kruise.TransferEnvVar{EnvName: "ONE", EnvNames: []string{"TWO", "ONE"}, SourceContainerName: "a"}
			if rapid.Bool().Draw(t, "by label") {
				from.SourceContainerName, from.SourceContainerNameFrom = "", &kruise.SourceContainerNameSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['source']"}}
			}
			c.TransferEnv = append(c.TransferEnv, from)
		}
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			spec.InitContainers = append(spec.InitContainers, c)
		case 1:
			c.UpgradeStrategy = kruise.SidecarContainerUpgradeStrategy{UpgradeType: kruise.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "empty"}
			fallthrough
		default:
			spec.Containers = append(spec.Containers, c)
		}
	}
	if rapid.Bool().Draw(t, "metadata") {
		spec.PatchPodMetadata = []kruise.SidecarSetPatchPodMetadata{{
			Annotations: map[string]string{"note": `{"a":null}`},
			PatchPolicy: rapid.SampledFrom([]kruise.SidecarSetPatchPolicyType{"", kruise.SidecarSetRetainPatchPolicy, kruise.SidecarSetOverwritePatchPolicy, kruise.SidecarSetMergePatchJSONPatchPolicy}).Draw(t, "policy"),
		}}
	}
	return Set{Name: rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, "set"), Spec: spec}
}
