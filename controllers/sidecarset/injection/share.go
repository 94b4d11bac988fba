// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
)

// shareVolumes adds the mounts and devices of the pod's own containers to a container, if the SidecarSet says so. It returns the
// variables that the paths of these mounts need.
func (m *merge) shareVolumes(container *corev1.Container, from *kruise.SidecarContainer) (env []corev1.EnvVar) {
	for i := range m.before.Spec.Containers {
		own := &m.before.Spec.Containers[i]
		if podmeta.IsInjected(own) {
			continue
		}
		if from.ShareVolumePolicy.Type == kruise.ShareVolumePolicyEnabled {
			env = addMissingEnv(env, shareMounts(container, own))
		}
		if policy := from.ShareVolumeDevicePolicy; policy != nil && policy.Type == kruise.ShareVolumePolicyEnabled {
			shareDevices(container, own)
		}
	}
	return env
}

func shareMounts(container, own *corev1.Container) (env []corev1.EnvVar) {
	for _, mount := range own.VolumeMounts {
		taken := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == mount.MountPath }) ||
			slices.ContainsFunc(container.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.DevicePath == mount.MountPath || d.Name == mount.Name })
		if taken {
			continue
		}
		mount := *mount.DeepCopy()
		if ptr.Deref(mount.MountPropagation, "") == corev1.MountPropagationBidirectional && !isPrivileged(container) {
			mount.MountPropagation = ptr.To(corev1.MountPropagationHostToContainer) // bidirectional propagation requires a privileged container
		}
		container.VolumeMounts = append(container.VolumeMounts, mount)
		for _, name := range referencedVariables(mount.SubPathExpr) {
			if variable := findVariable(own.Env, name); variable != nil {
				env = addMissingEnv(env, []corev1.EnvVar{*variable})
			}
		}
	}
	return env
}

func isPrivileged(container *corev1.Container) bool {
	return container.SecurityContext != nil && ptr.Deref(container.SecurityContext.Privileged, false)
}

func shareDevices(container, own *corev1.Container) {
	for _, device := range own.VolumeDevices {
		taken := slices.ContainsFunc(container.VolumeDevices, func(d corev1.VolumeDevice) bool {
			return d.DevicePath == device.DevicePath || d.Name == device.Name
		}) || slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.MountPath == device.DevicePath || m.Name == device.Name
		})
		if !taken {
			container.VolumeDevices = append(container.VolumeDevices, device)
		}
	}
}

// referencedVariables are the names that an expression refers to as $(NAME). $$(NAME) is no reference, but text.
func referencedVariables(expression string) (names []string) {
	for _, found := range regexp.MustCompile(`\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)`).FindAllStringSubmatch(expression, -1) {
		if found[1] != "" {
			names = append(names, found[1])
		}
	}
	return names
}

// addVolumes adds the volumes of a SidecarSet that its containers name. If the pod has a volume of that name, it stays as it is.
func (m *merge) addVolumes(set *Set) {
	named := map[string]bool{}
	for _, list := range [][]kruise.SidecarContainer{set.Spec.InitContainers, set.Spec.Containers} {
		for i := range list {
			for _, mount := range list[i].VolumeMounts {
				named[mount.Name] = true
			}
			for _, device := range list[i].VolumeDevices {
				named[device.Name] = true
			}
		}
	}
	for i := range m.pod.Spec.Volumes {
		delete(named, m.pod.Spec.Volumes[i].Name)
	}
	for i := range set.Spec.Volumes {
		if volume := &set.Spec.Volumes[i]; named[volume.Name] {
			delete(named, volume.Name)
			m.pod.Spec.Volumes = append(m.pod.Spec.Volumes, *volume.DeepCopy())
		}
	}
}

func (m *merge) addPullSecrets(secrets []corev1.LocalObjectReference) {
	for _, secret := range secrets {
		if !slices.Contains(m.pod.Spec.ImagePullSecrets, secret) {
			m.pod.Spec.ImagePullSecrets = append(m.pod.Spec.ImagePullSecrets, secret)
		}
	}
}

// transferredEnv returns the variables of the pod's own containers that a SidecarSet copies. Init containers get no variables of
// other init containers.
func (m *merge) transferredEnv(list []kruise.TransferEnvVar, init bool) (env []corev1.EnvVar) {
	sources := m.before.Spec.Containers
	if !init {
		sources = slices.Concat(sources, m.before.Spec.InitContainers)
	}
	for i := range list {
		name := m.sourceContainer(&list[i])
		at := slices.IndexFunc(sources, func(c corev1.Container) bool { return c.Name == name })
		if at < 0 {
			continue
		}
		names := map[string]bool{list[i].EnvName: true}
		for _, n := range list[i].EnvNames {
			names[n] = true
		}
		for _, n := range slices.Sorted(maps.Keys(names)) {
			if variable := findVariable(sources[at].Env, n); variable != nil {
				env = addMissingEnv(env, []corev1.EnvVar{*variable})
			}
		}
	}
	return env
}

// sourceContainer is the name of the container that variables are copied from.
func (m *merge) sourceContainer(from *kruise.TransferEnvVar) string {
	if from.SourceContainerName != "" || from.SourceContainerNameFrom == nil || from.SourceContainerNameFrom.FieldRef == nil {
		return from.SourceContainerName
	}
	found := regexp.MustCompile(`^metadata\.(labels|annotations)\['([^']+)'\]$`).FindStringSubmatch(from.SourceContainerNameFrom.FieldRef.FieldPath)
	switch {
	case found == nil: // such as metadata.name, which no container has
		return ""
	case found[1] == "labels":
		return m.pod.Labels[found[2]]
	}
	return m.pod.Annotations[found[2]]
}

func findVariable(env []corev1.EnvVar, name string) *corev1.EnvVar {
	for i := range env {
		if env[i].Name == name && name != "" {
			return env[i].DeepCopy()
		}
	}
	return nil
}

// addMissingEnv adds the variables whose names env does not have. If several have the same name, the first is added.
func addMissingEnv(env, more []corev1.EnvVar) []corev1.EnvVar {
	for _, variable := range more {
		if !slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Name == variable.Name }) {
			env = append(env, variable)
		}
	}
	return env
}

// replaceEnv adds variables; each replaces the variable of the same name if env has one.
func replaceEnv(env, more []corev1.EnvVar) []corev1.EnvVar {
	for _, variable := range more {
		if at := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == variable.Name }); at >= 0 {
			env[at] = variable
			continue
		}
		env = append(env, variable)
	}
	return env
}
