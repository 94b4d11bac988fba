// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/expression"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func (o Options) validateContainers(set, old *v1beta1.SidecarSet, found *rules.Findings) {
	spec := field.NewPath("spec")
	for i := range set.Spec.InitContainers {
		container, at := &set.Spec.InitContainers[i], spec.Child("initContainers").Index(i)
		if isSidecar(container) && set.Spec.UpdateStrategy.Type == v1beta1.RollingUpdateSidecarSetStrategyType {
			found.AddErrors(field.Forbidden(at.Child("restartPolicy"),
				"The initContainer in-place upgrade is not currently supported. Set updateStrategy.type to NotUpdate"))
		}
		if container.ResourcesPolicy != nil && !isSidecar(container) {
			found.AddErrors(field.Forbidden(at.Child("resourcesPolicy"), "an init container must have restartPolicy Always to have one"))
		}
		validateContainer(container, at, found)
	}
	for i := range set.Spec.Containers {
		validateContainer(&set.Spec.Containers[i], spec.Child("containers").Index(i), found)
	}
	if old != nil {
		validateChanges(set.Spec.InitContainers, old.Spec.InitContainers, false, spec.Child("initContainers"), found)
		validateChanges(set.Spec.Containers, old.Spec.Containers, true, spec.Child("containers"), found)
	}
	if old == nil || !sameContainers(set, old) || !equality.Semantic.DeepEqual(set.Spec.Volumes, old.Spec.Volumes) {
		o.validatePod(set, found)
	}
}

// validatePod checks the containers and volumes like those of a pod.
func (o Options) validatePod(set *v1beta1.SidecarSet, found *rules.Findings) {
	pod := podOf(set)
	o.Templates.ApplyDefaults(pod)
	found.AddErrors(slices.DeleteFunc(o.Templates.ValidateTemplate(pod, nil, nil), func(err *field.Error) bool {
		return err.Field == "spec.containers" // there is none: the pod brings one
	})...)
}

func isSidecar(container *v1beta1.SidecarContainer) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func validateContainer(container *v1beta1.SidecarContainer, path *field.Path, found *rules.Findings) {
	if container.UpgradeStrategy.UpgradeType == v1beta1.SidecarContainerHotUpgrade {
		if container.UpgradeStrategy.HotUpgradeEmptyImage == "" { // too dear for a rule of the schema
			found.AddErrors(field.Required(path.Child("upgradeStrategy", "hotUpgradeEmptyImage"), "must be set for HotUpgrade"))
		}
		for _, message := range validation.IsDNS1123Label(container.Name + "-1") {
			found.AddErrors(field.Invalid(path.Child("name"), container.Name, "the names of the two containers of HotUpgrade end with -1 and -2: "+message))
		}
	}
	for i := range container.TransferEnv {
		validateTransfer(&container.TransferEnv[i], path.Child("transferEnv").Index(i), found)
	}
	if container.ResourcesPolicy != nil {
		validateResources(container, path, found)
	}
}

func validateTransfer(env *v1beta1.TransferEnvVar, path *field.Path, found *rules.Findings) {
	from := env.SourceContainerNameFrom
	if from != nil && from.FieldRef != nil {
		reference := regexp.MustCompile(`^metadata\.((labels|annotations)\['[^']+'\]|name)$`)
		at := path.Child("sourceContainerNameFrom", "fieldRef", "fieldPath")
		if !reference.MatchString(from.FieldRef.FieldPath) {
			found.AddErrors(field.Invalid(at, from.FieldRef.FieldPath, "must be metadata.name, metadata.labels['<KEY>'] or metadata.annotations['<KEY>']"))
		}
		if from.FieldRef.FieldPath == "metadata.name" {
			found.AddWarning(at, "no container has the name of its pod, so nothing is copied.")
		}
	} else if env.SourceContainerName == "" {
		found.AddWarning(path, "it names no container to copy from, so nothing is copied.")
	}
	if env.EnvName == "" && len(env.EnvNames) == 0 {
		found.AddWarning(path, "it names no variable, so nothing is copied.")
	}
}

func validateResources(container *v1beta1.SidecarContainer, path *field.Path, found *rules.Findings) {
	policy, path, at := container.ResourcesPolicy, path.Child("resourcesPolicy"), path.Child("resources")
	if len(container.Resources.Limits)+len(container.Resources.Requests)+len(container.Resources.Claims) > 0 {
		found.AddErrors(field.Forbidden(path, "can not be set together with "+at.String()))
	}
	name := path.Child("targetContainersNameRegex")
	if policy.TargetContainersNameRegex == "" {
		found.AddErrors(field.Required(name, ""))
	} else if _, err := regexp.Compile(policy.TargetContainersNameRegex); err != nil {
		found.AddErrors(field.Invalid(name, policy.TargetContainersNameRegex, err.Error()))
	}
	check := func(text, variable string, at *field.Path) {
		if text == "" {
			return
		}
		if _, err := expression.Parse(text, variable); err != nil {
			found.AddErrors(field.Invalid(at, text, err.Error()))
		}
	}
	path = path.Child("resourcesExpr")
	if limits := policy.ResourcesExpr.Limits; limits != nil {
		check(limits.CPU, "cpu", path.Child("limits", "cpu"))
		check(limits.Memory, "memory", path.Child("limits", "memory"))
	}
	if requests := policy.ResourcesExpr.Requests; requests != nil {
		check(requests.CPU, "cpu", path.Child("requests", "cpu"))
		check(requests.Memory, "memory", path.Child("requests", "memory"))
	}
}

// validateChanges compares containers by name. A SidecarSet manages only pods that have all of its containers, so it would
// no longer manage the existing pods if a container were added.
func validateChanges(containers, old []v1beta1.SidecarContainer, noMore bool, path *field.Path, found *rules.Findings) {
	before := map[string]*v1beta1.SidecarContainer{}
	for i := range old {
		before[old[i].Name] = &old[i]
	}
	for i := range containers {
		container := &containers[i]
		was, ok := before[container.Name]
		switch {
		case !ok && noMore:
			found.AddErrors(field.Invalid(path.Index(i).Child("name"), container.Name, fmt.Sprintf("container %s is not found: containers can not be added by an update", container.Name)))
		case ok && upgradeType(was) != upgradeType(container):
			found.AddErrors(field.Invalid(path.Index(i).Child("upgradeStrategy", "upgradeType"), container.UpgradeStrategy.UpgradeType,
				fmt.Sprintf("is immutable: container %s has %s", container.Name, upgradeType(was))))
		}
	}
}

func upgradeType(container *v1beta1.SidecarContainer) v1beta1.SidecarContainerUpgradeType {
	if container.UpgradeStrategy.UpgradeType == "" {
		return v1beta1.SidecarContainerColdUpgrade
	}
	return container.UpgradeStrategy.UpgradeType
}
