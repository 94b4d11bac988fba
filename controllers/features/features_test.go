// SPDX-License-Identifier: Apache-2.0

package features

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/featuregate"
)

// The table of PL-09, but for ResourcesDeletionProtection, which the
// documentation has on, and for LaunchPriorityNativeSidecars, which is ours.
func TestTheTable(t *testing.T) {
	want := map[featuregate.Feature]string{
		PodWebhook: "on Beta", KruiseDaemon: "on Beta", DaemonWatchingPod: "on Beta", CloneSetShortHash: "off Alpha",
		KruisePodReadinessGate: "off Alpha", PreDownloadImageForInPlaceUpdate: "off Alpha", CloneSetPartitionRollback: "off Alpha",
		ResourcesDeletionProtection: "on Beta", WorkloadSpread: "on Beta", PodUnavailableBudgetDeleteGate: "on Beta",
		PodUnavailableBudgetUpdateGate: "off Alpha", TemplateNoDefaults: "off Alpha", InPlaceUpdateEnvFromMetadata: "on Beta",
		StatefulSetAutoDeletePVC: "on Beta", SidecarSetPatchPodMetadataDefaultsAllowed: "off Alpha", SidecarTerminator: "off Alpha",
		PodProbeMarkerGate: "on Beta", PreDownloadImageForDaemonSetUpdate: "off Alpha", CloneSetEventHandlerOptimization: "off Alpha",
		PreparingUpdateAsUpdate: "off Alpha", ImagePullJobGate: "off Alpha", ResourceDistributionGate: "off Beta",
		DeletionProtectionForCRDCascadingGate: "off Alpha", EnhancedLivenessProbe: "off Alpha",
		RecreatePodWhenChangeVCTInCloneSetGate: "off Alpha", StatefulSetStartOrdinal: "off Alpha", PodIndexLabel: "on Beta",
		EnableExternalCerts: "off Alpha", StatefulSetAutoResizePVCGate: "off Alpha", ForceDeleteTimeoutExpectationGate: "off Alpha",
		InPlaceWorkloadVerticalScaling: "off Alpha", EnablePodProbeMarkerOnServerless: "off Alpha",
		EnableSortSidecarContainerByName: "off Alpha", InPlacePodVerticalScaling: "off Alpha",
		DefaultHostNetworkHostPortsInPodTemplates: "off Alpha", DaemonSetPruneIneligibleNodes: "off Alpha",
		LaunchPriorityNativeSidecars: "off Alpha",
	}
	got := map[featuregate.Feature]string{}
	for f, spec := range gateSpecs() {
		got[f] = map[bool]string{true: "on ", false: "off "}[spec.Default] + map[bool]string{true: "Alpha", false: "Beta"}[spec.PreRelease == featuregate.Alpha]
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 37 {
		t.Errorf("%d gates\n%s", len(want), diff)
	}
}

// Each gate has an effect: the manager reads it, itself or in a part's gates.go, where a list
// names the gates that a part or a kind needs.
func TestEachGateIsRead(t *testing.T) {
	manager, err := filepath.Glob("../manager/*.go")
	if err != nil || len(manager) == 0 {
		t.Fatalf("finding the manager: %v", err)
	}
	ofParts, err := filepath.Glob("../*/gates.go")
	if err != nil || len(ofParts) == 0 {
		t.Fatalf("finding the parts that read gates: %v", err)
	}
	ofWorkloads, err := filepath.Glob("../workload/*/gates.go")
	if err != nil || len(ofWorkloads) == 0 {
		t.Fatalf("finding what all workloads read: %v", err)
	}
	steps, err := filepath.Glob("../webhook/pod/*/*.go")
	if err != nil || len(steps) == 0 {
		t.Fatalf("finding the steps of the webhooks of pods: %v", err)
	}
	var read, said []string
	for _, file := range slices.Concat(manager, ofParts, ofWorkloads, steps) {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:(?:on|Enabled)\(|gate: |{)features\.(\w+)`).FindAllStringSubmatch(string(source), -1) {
			read = append(read, m[1])
		}
		for _, list := range regexp.MustCompile(`\[\]featuregate\.Feature\{([^}]*)\}`).FindAllString(string(source), -1) {
			for _, m := range regexp.MustCompile(`features\.(\w+)`).FindAllStringSubmatch(list, -1) {
				read = append(read, m[1])
			}
		}
	}
	for f := range gateSpecs() {
		said = append(said, string(f))
	}
	slices.Sort(read)
	slices.Sort(said)
	if diff := cmp.Diff(slices.Compact(read), said); diff != "" {
		t.Errorf("the manager reads (-), there are (+)\n%s", diff)
	}
}
