// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the older apps.kruise.io API: served, converted, never stored, but for the kinds that no newer
// version has. Parts that are the same JSON in both versions are the types of v1beta1, so that they cannot drift apart
// and conversion has nothing to lose there.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
