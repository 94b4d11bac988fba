// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateContainers(spec *corev1.PodSpec, volumes volumes, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names, hostPorts := sets.New[string](), sets.New[string]()
	at := path.Child("containers")
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(at, ""))
	}
	for i := range spec.Containers {
		container := &spec.Containers[i]
		errs = append(errs, validateContainer(container, names, volumes, at.Index(i))...)
		errs = append(errs, validatePorts(container.Ports, hostPorts, spec.HostNetwork, at.Index(i).Child("ports"))...)
		errs = append(errs, validateHooks(container, at.Index(i))...)
	}
	at = path.Child("initContainers")
	for i := range spec.InitContainers {
		container := &spec.InitContainers[i]
		errs = append(errs, validateContainer(container, names, volumes, at.Index(i))...)
		// Init containers run one by one, so each may use a host port that another uses.
		errs = append(errs, validatePorts(container.Ports, sets.New[string](), spec.HostNetwork, at.Index(i).Child("ports"))...)
		if isSidecar(container) {
			errs = append(errs, validateHooks(container, at.Index(i))...)
		} else {
			errs = append(errs, forbidHooks(container, at.Index(i))...)
		}
	}
	return errs
}

func isSidecar(container *corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// validateContainer adds the container's name to names: no two containers of a pod, of either kind, may have the
// same name.
func validateContainer(container *corev1.Container, names sets.Set[string], volumes volumes, path *field.Path) field.ErrorList {
	errs := validateName(container.Name, names, path.Child("name"))
	if container.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), ""))
	}
	errs = append(errs, oneOf(container.ImagePullPolicy, path.Child("imagePullPolicy"), corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, oneOf(container.TerminationMessagePolicy, path.Child("terminationMessagePolicy"),
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validateEnv(container, path)...)
	errs = append(errs, validateMounts(container, volumes, path)...)
	return append(errs, validateResources(&container.Resources, path.Child("resources"))...)
}

// validateName requires a DNS label that no other entry of the list has.
func validateName(name string, taken sets.Set[string], path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := invalidErrors(path, name, validation.IsDNS1123Label(name))
	if taken.Has(name) {
		errs = append(errs, field.Duplicate(path, name))
	}
	taken.Insert(name)
	return errs
}

func validatePorts(ports []corev1.ContainerPort, hostPorts sets.Set[string], hostNetwork bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, port := range ports {
		at := path.Index(i)
		if messages := validation.IsValidPortName(port.Name); port.Name != "" && len(messages) > 0 {
			errs = append(errs, invalidErrors(at.Child("name"), port.Name, messages)...)
		} else if port.Name != "" && names.Has(port.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), port.Name))
		}
		names.Insert(port.Name)
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(errs, portNumber(port.ContainerPort, at.Child("containerPort"))...)
		}
		errs = append(errs, oneOf(port.Protocol, at.Child("protocol"), corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
		if port.HostPort == 0 {
			continue
		}
		errs = append(errs, portNumber(port.HostPort, at.Child("hostPort"))...)
		if hostNetwork && port.HostPort != port.ContainerPort {
			errs = append(errs, field.Invalid(at.Child("hostPort"), port.HostPort, "must match `containerPort` when `hostNetwork` is true"))
		}
		key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
		if hostPorts.Has(key) {
			errs = append(errs, field.Duplicate(at.Child("hostPort"), key))
		}
		hostPorts.Insert(key)
	}
	return errs
}

func portNumber(port int32, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsValidPortNum(int(port)) {
		errs = append(errs, field.Invalid(path, port, message))
	}
	return errs
}

func validateEnv(container *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, env := range container.Env {
		at := path.Child("env").Index(i)
		if env.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			errs = append(errs, invalidErrors(at.Child("name"), env.Name, validation.IsRelaxedEnvVarName(env.Name))...)
		}
		if env.ValueFrom == nil {
			continue
		}
		from := env.ValueFrom
		sources := countSet(from.FieldRef != nil, from.ResourceFieldRef != nil, from.ConfigMapKeyRef != nil, from.SecretKeyRef != nil, from.FileKeyRef != nil)
		switch {
		case sources == 0:
			errs = append(errs, field.Invalid(at.Child("valueFrom"), "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
		case env.Value != "":
			errs = append(errs, field.Invalid(at.Child("valueFrom"), "", "may not be specified when `value` is not empty"))
		case sources > 1:
			errs = append(errs, field.Invalid(at.Child("valueFrom"), "", "may not have more than one field specified at a time"))
		}
	}
	for i, from := range container.EnvFrom {
		switch at := path.Child("envFrom").Index(i); countSet(from.ConfigMapRef != nil, from.SecretRef != nil) {
		case 0:
			errs = append(errs, field.Invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"))
		case 2:
			errs = append(errs, field.Invalid(at, "", "may not have more than one field specified at a time"))
		}
	}
	return errs
}

func countSet(set ...bool) int {
	return len(set) - len(slices.DeleteFunc(slices.Clone(set), func(isSet bool) bool { return isSet }))
}
