// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the apps.kruise.io API as it is stored: the hub of every conversion. What Regatta writes on pods
// (labels, annotations, conditions and the JSON documents inside them) is the same in all versions and lives here too.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1
