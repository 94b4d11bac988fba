// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the policy.kruise.io API in its first version.
//
// +kubebuilder:object:generate=true
// +groupName=policy.kruise.io
package v1alpha1
