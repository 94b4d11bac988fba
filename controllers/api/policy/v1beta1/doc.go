// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the policy.kruise.io API as it is stored: the hub of every conversion. Labels and annotations are
// the same in all versions and stand in v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=policy.kruise.io
package v1beta1
