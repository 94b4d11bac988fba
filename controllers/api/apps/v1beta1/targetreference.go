// SPDX-License-Identifier: Apache-2.0

package v1beta1

// TargetReference names a workload in the namespace of the object that refers to it.
type TargetReference struct {
	// APIVersion of the workload. Only its group counts: any version finds the workload.
	APIVersion string `json:"apiVersion"`
	// Kind of the workload.
	Kind string `json:"kind"`
	// Name of the workload.
	Name string `json:"name"`
}
