// Package features has the feature gates of the manager and the node agent
// (features.md 22).
package features

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"
)

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
)

// aliases are names of gates that the documentation used.
func aliases() map[featuregate.Feature]featuregate.Feature {
	return map[featuregate.Feature]featuregate.Feature{
		"EnhancedLivenessProbeGate":                EnhancedLivenessProbe,
		"ForceDeleteTimeoutExpectationFeatureGate": ForceDeleteTimeoutExpectationGate,
	}
}

func table() map[featuregate.Feature]featuregate.FeatureSpec {
	alpha := func(on bool) featuregate.FeatureSpec {
		return featuregate.FeatureSpec{Default: on, PreRelease: featuregate.Alpha}
	}
	beta := func(on bool) featuregate.FeatureSpec {
		return featuregate.FeatureSpec{Default: on, PreRelease: featuregate.Beta}
	}
	t := map[featuregate.Feature]featuregate.FeatureSpec{
		PodWebhook: beta(true), KruiseDaemon: beta(true), DaemonWatchingPod: beta(true),
		// The seeds' table has it on; OpenKruise's code has it off. The seeds win.
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
	} {
		t[f] = alpha(false)
	}
	for alias, f := range aliases() {
		t[alias] = t[f]
	}
	return t
}

// implemented are the gates that something reads. A gate that is turned on
// without being among them does nothing yet, and the manager says so.
func implemented() []featuregate.Feature {
	return []featuregate.Feature{
		CloneSetShortHash, CloneSetPartitionRollback, PreparingUpdateAsUpdate, InPlaceWorkloadVerticalScaling,
		InPlaceUpdateEnvFromMetadata, RecreatePodWhenChangeVCTInCloneSetGate, CloneSetEventHandlerOptimization,
		ForceDeleteTimeoutExpectationGate, ResourcesDeletionProtection, TemplateNoDefaults, EnableExternalCerts,
		DefaultHostNetworkHostPortsInPodTemplates,
	}
}

// closures are gates that go off with another one (PL-01).
func closures() map[featuregate.Feature][]featuregate.Feature {
	return map[featuregate.Feature][]featuregate.Feature{
		PodWebhook: {
			KruisePodReadinessGate, PodUnavailableBudgetDeleteGate, PodUnavailableBudgetUpdateGate, WorkloadSpread,
			SidecarSetPatchPodMetadataDefaultsAllowed, EnhancedLivenessProbe, EnablePodProbeMarkerOnServerless,
		},
		KruiseDaemon: {
			PreDownloadImageForInPlaceUpdate, DaemonWatchingPod, InPlaceUpdateEnvFromMetadata, PreDownloadImageForDaemonSetUpdate,
			PodProbeMarkerGate, SidecarTerminator, ImagePullJobGate, EnhancedLivenessProbe,
		},
		ResourcesDeletionProtection: {DeletionProtectionForCRDCascadingGate},
	}
}

// Gates is a set of gates. Its Set method reads the flag --feature-gates.
type Gates struct{ featuregate.MutableFeatureGate }

// New makes gates with their defaults.
func New() (Gates, error) {
	g := Gates{featuregate.NewFeatureGate()}
	if err := g.Add(table()); err != nil {
		return g, fmt.Errorf("registering feature gates: %w", err)
	}
	return g, nil
}

// Set reads a flag value such as "A=true,B=false". Names that do not exist are
// refused.
func (g Gates) Set(value string) error { return g.MutableFeatureGate.Set(value) }

// Type names the flag's type in help texts.
func (Gates) Type() string { return "mapStringBool" }

// String is the flag's value.
func (g Gates) String() string { return "" }

// Resolve applies what gates do to one another once all were set (PL-01).
// webhookResources is the environment variable CUSTOM_RESOURCE_ENABLE: set
// without SidecarSet it turns PodWebhook off unless that was asked for.
func (g Gates) Resolve(webhookResources string, explicit func(featuregate.Feature) bool) error {
	off := map[string]bool{}
	if webhookResources != "" && !slices.Contains(strings.Split(webhookResources, ","), "SidecarSet") && !explicit(PodWebhook) {
		off[string(PodWebhook)] = false
	}
	if err := g.SetFromMap(off); err != nil {
		return fmt.Errorf("applying CUSTOM_RESOURCE_ENABLE: %w", err)
	}
	changes := map[string]bool{}
	for alias, f := range aliases() {
		if g.Enabled(alias) {
			changes[string(f)] = true
		}
	}
	for gate, closed := range closures() {
		if !g.Enabled(gate) {
			for _, f := range closed {
				changes[string(f)] = false
			}
		}
	}
	for _, f := range []featuregate.Feature{PreDownloadImageForInPlaceUpdate, PreDownloadImageForDaemonSetUpdate} {
		if on, forced := changes[string(f)]; g.Enabled(f) && (!forced || on) {
			changes[string(ImagePullJobGate)] = true
		}
	}
	if err := g.SetFromMap(changes); err != nil {
		return fmt.Errorf("resolving feature gates: %w", err)
	}
	return nil
}

// Idle names the gates that were turned on but do nothing yet, sorted.
func (g Gates) Idle() []string {
	var out []string
	for f, spec := range table() {
		_, alias := aliases()[f]
		if g.Enabled(f) && !spec.Default && !alias && !slices.Contains(implemented(), f) {
			out = append(out, string(f))
		}
	}
	slices.Sort(out)
	return out
}
