// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
)

// Default sets the defaults of a SidecarSet that is created, with the default feature gates.
func Default(set *v1beta1.SidecarSet) { Options{}.setDefaults(set, nil) }

func (o Options) setDefaults(set, old *v1beta1.SidecarSet) {
	spec := &set.Spec
	if spec.RevisionHistoryLimit == nil {
		spec.RevisionHistoryLimit = ptr.To[int32](10)
	}
	strategy := &spec.UpdateStrategy
	orElse(&strategy.Type, v1beta1.RollingUpdateSidecarSetStrategyType)
	if strategy.Partition == nil {
		strategy.Partition = ptr.To(intstr.FromInt32(0))
	}
	if strategy.MaxUnavailable == nil {
		strategy.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	}
	for i := range spec.PatchPodMetadata {
		orElse(&spec.PatchPodMetadata[i].PatchPolicy, v1beta1.SidecarSetRetainPatchPolicy)
	}
	// New defaults of a release would change containers without a request of the user, and so update pods.
	if !o.KeepTemplates && (old == nil || !sameContainers(set, old)) {
		if old != nil {
			keepPullPolicies(set.Spec.InitContainers, old.Spec.InitContainers)
			keepPullPolicies(set.Spec.Containers, old.Spec.Containers)
		}
		pod := podOf(set)
		o.Templates.ApplyDefaults(pod)
		takeContainers(set, pod)
	}
	for i := range spec.InitContainers {
		defaultContainer(&spec.InitContainers[i], v1beta1.AfterAppContainerType)
	}
	for i := range spec.Containers {
		defaultContainer(&spec.Containers[i], v1beta1.BeforeAppContainerType)
	}
	// Regatta decides by the spec: the annotations are for users, and for a manager of OpenKruise.
	if hashes, err := podmeta.HashesOf(spec); err == nil {
		hashes.SetAnnotations(set)
	}
}

// keepPullPolicies keeps the pull policy of a container if the user sets none and the old one may be a default. kubectl
// applies lists of custom resources as a whole, and drops the default. An image with another kind of tag would get another
// default, and since a pull policy cannot be changed in place, no pod would be updated to it.
func keepPullPolicies(containers, old []v1beta1.SidecarContainer) {
	for i := range containers {
		at := slices.IndexFunc(old, func(c v1beta1.SidecarContainer) bool { return c.Name == containers[i].Name })
		if at >= 0 && old[at].ImagePullPolicy != corev1.PullNever {
			orElse(&containers[i].ImagePullPolicy, old[at].ImagePullPolicy)
		}
	}
}

func defaultContainer(container *v1beta1.SidecarContainer, policy v1beta1.PodInjectPolicyType) {
	orElse(&container.PodInjectPolicy, policy)
	orElse(&container.UpgradeStrategy.UpgradeType, v1beta1.SidecarContainerColdUpgrade)
	orElse(&container.ShareVolumePolicy.Type, v1beta1.ShareVolumePolicyDisabled)
	for i := range container.TransferEnv {
		if from := container.TransferEnv[i].SourceContainerNameFrom; from != nil && from.FieldRef != nil {
			orElse(&from.FieldRef.APIVersion, "v1")
		}
	}
}

func sameContainers(a, b *v1beta1.SidecarSet) bool {
	return equality.Semantic.DeepEqual(a.Spec.Containers, b.Spec.Containers) &&
		equality.Semantic.DeepEqual(a.Spec.InitContainers, b.Spec.InitContainers)
}

// podOf returns a pod template that has only the containers and volumes of a SidecarSet. Paths in it are the
// same as in the SidecarSet.
func podOf(set *v1beta1.SidecarSet) *corev1.PodTemplateSpec {
	pod := &corev1.PodTemplateSpec{}
	pod.Spec.Volumes = set.DeepCopy().Spec.Volumes
	for i := range set.Spec.InitContainers {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, *set.Spec.InitContainers[i].Container.DeepCopy())
	}
	for i := range set.Spec.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, *set.Spec.Containers[i].Container.DeepCopy())
	}
	return pod
}

func takeContainers(set *v1beta1.SidecarSet, pod *corev1.PodTemplateSpec) {
	for i := range pod.Spec.InitContainers {
		set.Spec.InitContainers[i].Container = pod.Spec.InitContainers[i]
	}
	for i := range pod.Spec.Containers {
		set.Spec.Containers[i].Container = pod.Spec.Containers[i]
	}
}

func orElse[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}
