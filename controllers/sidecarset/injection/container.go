// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
)

// buildContainer builds the container of a pod from one of a SidecarSet (SS-06), or two of them for a hot pair (SS-07).
func (m *merge) buildContainer(set *Set, from *kruise.SidecarContainer, init bool) {
	container := from.Container.DeepCopy()
	shared := m.shareVolumes(container, from)
	container.Env = append(container.Env, corev1.EnvVar{Name: kruise.SidecarInjectedEnv, Value: "true"})
	container.Env = addMissingEnv(container.Env, m.transferredEnv(from.TransferEnv, init))
	container.Env = addMissingEnv(container.Env, shared)

	into := &m.containers
	if init {
		into = &m.inits
	}
	inFront := from.PodInjectPolicy == kruise.BeforeAppContainerType
	if !podmeta.IsHot(from) {
		*into = append(*into, placed{set.Name, *container, inFront})
		return
	}
	first, second := m.buildHotPair(container, from.UpgradeStrategy.HotUpgradeEmptyImage)
	*into = append(*into, placed{set.Name, *first, inFront}, placed{set.Name, *second, inFront})
}

// buildHotPair builds the two containers that take turns: one works, the other one has the empty image.
func (m *merge) buildHotPair(container *corev1.Container, empty string) (works, idle *corev1.Container) {
	first, second := podmeta.HotPair(container.Name)
	works, idle = container.DeepCopy(), container.DeepCopy()
	works.Name, idle.Name, idle.Image = first, second, empty
	for _, c := range []*corev1.Container{works, idle} {
		c.Env = replaceEnv(c.Env, []corev1.EnvVar{
			versionEnv(kruise.SidecarSetVersionEnv, kruise.SidecarSetVersionPrefix+c.Name),
			versionEnv(kruise.SidecarSetVersionAltEnv, kruise.SidecarSetVersionAltPrefix+c.Name),
		})
	}
	podmeta.SetVersions(m.pod, first, "1", "0")
	podmeta.SetVersions(m.pod, second, "0", "1")
	// It cannot fail: what is written is a map of strings.
	_ = podmeta.SetWorking(m.pod, container.Name, first)
	return works, idle
}

func versionEnv(name, annotation string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		APIVersion: "v1", FieldPath: fmt.Sprintf("metadata.annotations['%s']", annotation),
	}}}
}

// checkUniqueNames fails if two containers would have the same name. API servers refuse such a pod too, but name a field of a pod
// that no user wrote.
func (m *merge) checkUniqueNames() error {
	own := map[string]string{}
	for i := range m.before.Spec.InitContainers {
		own[m.before.Spec.InitContainers[i].Name] = "initContainers"
	}
	for i := range m.before.Spec.Containers {
		own[m.before.Spec.Containers[i].Name] = "containers"
	}
	seen := map[string]string{}
	for list, added := range map[string][]placed{"initContainers": m.inits, "containers": m.containers} {
		for _, p := range added {
			if other, ok := seen[p.container.Name]; ok {
				return fmt.Errorf("SidecarSet %s: spec.%s: SidecarSet %s has a container %q for this pod too", p.set, list, other, p.container.Name)
			}
			seen[p.container.Name] = p.set
			if where, ok := own[p.container.Name]; ok && where != list {
				return fmt.Errorf("SidecarSet %s: spec.%s: the pod has a container %q in spec.%s, so it cannot have one in spec.%s",
					p.set, list, p.container.Name, where, list)
			}
		}
	}
	return nil
}

// checkDevices fails if a container would use a volume as a device that is neither a claim nor ephemeral: a volume of the pod takes
// precedence over one of a SidecarSet.
func (m *merge) checkDevices() error {
	for list, added := range map[string][]placed{"initContainers": m.inits, "containers": m.containers} {
		for _, p := range added {
			for _, device := range p.container.VolumeDevices {
				at := slices.IndexFunc(m.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == device.Name })
				if at < 0 || m.pod.Spec.Volumes[at].PersistentVolumeClaim != nil || m.pod.Spec.Volumes[at].Ephemeral != nil {
					continue
				}
				return fmt.Errorf("SidecarSet %s: spec.%s: container %q has the volume %q as a device, and the pod has a volume of that name that is none",
					p.set, list, p.container.Name, device.Name)
			}
		}
	}
	return nil
}

func fieldError(set *Set, field string, err error) error {
	return fmt.Errorf("SidecarSet %s: spec.%s: %w", set.Name, field, err)
}
