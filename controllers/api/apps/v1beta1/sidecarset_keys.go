// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Marks of a SidecarSet, and of its pods as a JSON map by SidecarSet.
const (
	// SidecarSetHashKey annotates with the hash of the containers that may be in a pod.
	SidecarSetHashKey = "kruise.io/sidecarset-hash"
	// SidecarSetHashWithoutImageKey annotates with the same hash, of the containers without their images: pods of
	// another one cannot be updated in place.
	SidecarSetHashWithoutImageKey = "kruise.io/sidecarset-hash-without-image"
)

// Marks of SidecarSets and their revisions.
const (
	// SidecarSetCustomVersionKey labels a revision, and in v1alpha1 the SidecarSet, with spec.customVersion.
	SidecarSetCustomVersionKey = "apps.kruise.io/sidecarset-custom-version"

	// SidecarSetNameKey labels a revision with the name of its SidecarSet.
	SidecarSetNameKey = "kruise.io/sidecarset-name"

	// SidecarSetCanaryKey, with the value "true", annotates a SidecarSet that stands in for SidecarSetBaseKey in pods
	// that both match.
	SidecarSetCanaryKey = "apps.kruise.io/sidecarset-canary"
	SidecarSetBaseKey   = "apps.kruise.io/sidecarset-base"

	// SidecarSetInjectionFailurePolicyKey annotates a SidecarSet, with the value "Ignore", without which pods may start while
	// no policy decides what they are given. Otherwise they are refused.
	SidecarSetInjectionFailurePolicyKey = "policy.kruise.io/injection-failure-policy"

	// SidecarSetRecreateMissedKey annotates a SidecarSet, with the value "true", that pods are to be evicted that should have been
	// given its containers and were not. It is ours.
	SidecarSetRecreateMissedKey = "apps.kruise.io/sidecarset-recreate-missed"
)

// Marks of pods that have containers of a SidecarSet.
const (
	// SidecarSetInjectedListKey annotates with the names of the SidecarSets, between commas.
	SidecarSetInjectedListKey = "kruise.io/sidecarset-injected-list"
	// SidecarSetInPlaceUpdateStateKey annotates with a JSON map of InPlaceUpdateState by SidecarSet.
	SidecarSetInPlaceUpdateStateKey = "kruise.io/sidecarset-inplace-update-state"

	// SidecarSetWorkingHotUpgradeKey annotates with a JSON map of the container that works, by name in the SidecarSet.
	SidecarSetWorkingHotUpgradeKey = "kruise.io/sidecarset-working-hotupgrade-container"
	// SidecarSetVersionPrefix and SidecarSetVersionAltPrefix, with the name of a container, annotate with the versions
	// of the container and of the one it takes turns with.
	SidecarSetVersionPrefix    = "version.sidecarset.kruise.io/"
	SidecarSetVersionAltPrefix = "versionalt.sidecarset.kruise.io/"
)

// Environment variables of containers that a SidecarSet put into a pod.
const (
	// SidecarInjectedEnv has the value "true" in all of them.
	SidecarInjectedEnv = "IS_INJECTED"
	// SidecarSetVersionEnv and SidecarSetVersionAltEnv read the two versions of a container that is upgraded hot.
	SidecarSetVersionEnv    = "SIDECARSET_VERSION"
	SidecarSetVersionAltEnv = "SIDECARSET_VERSION_ALT"
)

// SidecarSetWhiteListKey of the ConfigMap kruise-configuration says which annotations patchPodMetadata may set.
const SidecarSetWhiteListKey = "SidecarSet_PatchPodMetadata_WhiteList"
