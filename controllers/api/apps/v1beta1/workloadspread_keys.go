// SPDX-License-Identifier: Apache-2.0

package v1beta1

const (
	// MatchedWorkloadSpreadKey annotates a pod with a JSON object of the WorkloadSpread's name, the subset and, for a pod
	// that had no name yet, the uid it is recorded under.
	MatchedWorkloadSpreadKey = "apps.kruise.io/matched-workloadspread"

	// WorkloadSpreadIgnoreExistingPodsKey, with the value "true" on a WorkloadSpread, leaves pods that were there before
	// without the labels and annotations of the patch.
	WorkloadSpreadIgnoreExistingPodsKey = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata"

	// WorkloadSpreadVersionIgnored is the key of versionedSubsetStatuses for pods whose version does not count.
	WorkloadSpreadVersionIgnored = "versionIgnored"

	// WorkloadSpreadWhiteListKey of the ConfigMap kruise-configuration lists more kinds of workloads.
	WorkloadSpreadWhiteListKey = "WorkloadSpread_Watch_Custom_Workload_WhiteList"
)
