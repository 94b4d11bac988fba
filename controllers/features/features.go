// SPDX-License-Identifier: Apache-2.0

// Package features has the feature gates of the manager and the node agent
// (PL-09).
package features

import "k8s.io/component-base/featuregate"

// The gates. Each is described in charts/kruise/README.md.
const (
	PodWebhook                                featuregate.Feature = "PodWebhook"
	KruiseDaemon                              featuregate.Feature = "KruiseDaemon"
	DaemonWatchingPod                         featuregate.Feature = "DaemonWatchingPod"
	CloneSetShortHash                         featuregate.Feature = "CloneSetShortHash"
	KruisePodReadinessGate                    featuregate.Feature = "KruisePodReadinessGate"
	PreDownloadImageForInPlaceUpdate          featuregate.Feature = "PreDownloadImageForInPlaceUpdate"
	CloneSetPartitionRollback                 featuregate.Feature = "CloneSetPartitionRollback"
	ResourcesDeletionProtection               featuregate.Feature = "ResourcesDeletionProtection"
	WorkloadSpread                            featuregate.Feature = "WorkloadSpread"
	PodUnavailableBudgetDeleteGate            featuregate.Feature = "PodUnavailableBudgetDeleteGate"
	PodUnavailableBudgetUpdateGate            featuregate.Feature = "PodUnavailableBudgetUpdateGate"
	TemplateNoDefaults                        featuregate.Feature = "TemplateNoDefaults"
	InPlaceUpdateEnvFromMetadata              featuregate.Feature = "InPlaceUpdateEnvFromMetadata"
	StatefulSetAutoDeletePVC                  featuregate.Feature = "StatefulSetAutoDeletePVC"
	SidecarSetPatchPodMetadataDefaultsAllowed featuregate.Feature = "SidecarSetPatchPodMetadataDefaultsAllowed"
	SidecarTerminator                         featuregate.Feature = "SidecarTerminator"
	PodProbeMarkerGate                        featuregate.Feature = "PodProbeMarkerGate"
	PreDownloadImageForDaemonSetUpdate        featuregate.Feature = "PreDownloadImageForDaemonSetUpdate"
	CloneSetEventHandlerOptimization          featuregate.Feature = "CloneSetEventHandlerOptimization"
	PreparingUpdateAsUpdate                   featuregate.Feature = "PreparingUpdateAsUpdate"
	ImagePullJobGate                          featuregate.Feature = "ImagePullJobGate"
	ResourceDistributionGate                  featuregate.Feature = "ResourceDistributionGate"
	DeletionProtectionForCRDCascadingGate     featuregate.Feature = "DeletionProtectionForCRDCascadingGate"
	EnhancedLivenessProbe                     featuregate.Feature = "EnhancedLivenessProbe"
	RecreatePodWhenChangeVCTInCloneSetGate    featuregate.Feature = "RecreatePodWhenChangeVCTInCloneSetGate"
	StatefulSetStartOrdinal                   featuregate.Feature = "StatefulSetStartOrdinal"
	PodIndexLabel                             featuregate.Feature = "PodIndexLabel"
	EnableExternalCerts                       featuregate.Feature = "EnableExternalCerts"
	StatefulSetAutoResizePVCGate              featuregate.Feature = "StatefulSetAutoResizePVCGate"
	ForceDeleteTimeoutExpectationGate         featuregate.Feature = "ForceDeleteTimeoutExpectationGate"
	InPlaceWorkloadVerticalScaling            featuregate.Feature = "InPlaceWorkloadVerticalScaling"
	EnablePodProbeMarkerOnServerless          featuregate.Feature = "EnablePodProbeMarkerOnServerless"
	EnableSortSidecarContainerByName          featuregate.Feature = "EnableSortSidecarContainerByName"
	InPlacePodVerticalScaling                 featuregate.Feature = "InPlacePodVerticalScaling"
	DefaultHostNetworkHostPortsInPodTemplates featuregate.Feature = "DefaultHostNetworkHostPortsInPodTemplates"
	DaemonSetPruneIneligibleNodes             featuregate.Feature = "DaemonSetPruneIneligibleNodes"
	// LaunchPriorityNativeSidecars does not exist in OpenKruise.
	LaunchPriorityNativeSidecars featuregate.Feature = "LaunchPriorityNativeSidecars"
)

func gateSpecs() map[featuregate.Feature]featuregate.FeatureSpec {
	alpha := func(on bool) featuregate.FeatureSpec {
		return featuregate.FeatureSpec{Default: on, PreRelease: featuregate.Alpha}
	}
	beta := func(on bool) featuregate.FeatureSpec {
		return featuregate.FeatureSpec{Default: on, PreRelease: featuregate.Beta}
	}
	t := map[featuregate.Feature]featuregate.FeatureSpec{
		PodWebhook: beta(true), KruiseDaemon: beta(true), DaemonWatchingPod: beta(true),
		// In OpenKruise the documentation says on, and the code has it off (DP-01).
		ResourcesDeletionProtection: beta(true),
		WorkloadSpread:              beta(true), PodUnavailableBudgetDeleteGate: beta(true),
		InPlaceUpdateEnvFromMetadata: beta(true), StatefulSetAutoDeletePVC: beta(true),
		PodProbeMarkerGate: beta(true), ResourceDistributionGate: beta(false), PodIndexLabel: beta(true),
	}
	for _, f := range []featuregate.Feature{
		CloneSetShortHash, KruisePodReadinessGate, PreDownloadImageForInPlaceUpdate, CloneSetPartitionRollback,
		PodUnavailableBudgetUpdateGate, TemplateNoDefaults, SidecarSetPatchPodMetadataDefaultsAllowed, SidecarTerminator,
		PreDownloadImageForDaemonSetUpdate, CloneSetEventHandlerOptimization, PreparingUpdateAsUpdate, ImagePullJobGate,
		DeletionProtectionForCRDCascadingGate, EnhancedLivenessProbe, RecreatePodWhenChangeVCTInCloneSetGate,
		StatefulSetStartOrdinal, EnableExternalCerts, StatefulSetAutoResizePVCGate, ForceDeleteTimeoutExpectationGate,
		InPlaceWorkloadVerticalScaling, EnablePodProbeMarkerOnServerless, EnableSortSidecarContainerByName,
		InPlacePodVerticalScaling, DefaultHostNetworkHostPortsInPodTemplates, DaemonSetPruneIneligibleNodes,
		LaunchPriorityNativeSidecars,
	} {
		t[f] = alpha(false)
	}
	return t
}

// notOfAllAlpha are alpha gates that AllAlpha=true does not turn on. EnableExternalCerts waits for the
// certificates of another tool, and AllAlpha=true does not mean that this tool is installed.
// LaunchPriorityNativeSidecars changes OpenKruise's behavior, and users of OpenKruise may have AllAlpha=true in
// their values.
func notOfAllAlpha() []featuregate.Feature {
	return []featuregate.Feature{EnableExternalCerts, LaunchPriorityNativeSidecars}
}

// dependentGates are gates that are turned off with another gate (PL-01).
func dependentGates() map[featuregate.Feature][]featuregate.Feature {
	return map[featuregate.Feature][]featuregate.Feature{
		PodWebhook: {
			KruisePodReadinessGate, PodUnavailableBudgetDeleteGate, PodUnavailableBudgetUpdateGate, WorkloadSpread,
			SidecarSetPatchPodMetadataDefaultsAllowed, EnhancedLivenessProbe, EnablePodProbeMarkerOnServerless,
			LaunchPriorityNativeSidecars,
		},
		KruiseDaemon: {
			PreDownloadImageForInPlaceUpdate, DaemonWatchingPod, InPlaceUpdateEnvFromMetadata, PreDownloadImageForDaemonSetUpdate,
			PodProbeMarkerGate, SidecarTerminator, ImagePullJobGate, EnhancedLivenessProbe,
		},
		ResourcesDeletionProtection: {DeletionProtectionForCRDCascadingGate},
	}
}
