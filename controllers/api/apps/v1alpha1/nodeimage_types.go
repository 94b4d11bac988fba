// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// NodeImageSpec is the images that a node shall have.
type NodeImageSpec struct {
	// Images by name, at most 256. A name is as people write it, without a tag: nginx, not docker.io/library/nginx.
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule=`self.all(name, name != "")`,message="must not have an image without a name"
	// +optional
	Images map[string]ImageSpec `json:"images,omitempty"`
}

// ImageSpec is what is wanted of one image.
type ImageSpec struct {
	// PullSecrets are tried one after the other, and at last none at all.
	// +optional
	PullSecrets []ReferenceObject `json:"pullSecrets,omitempty"`

	// Tags to pull, sorted by their names. An image without any is removed from the list.
	Tags []v1beta1.ImageTagSpec `json:"tags"`

	// SandboxConfig is handed to the container runtime with every pull.
	// +optional
	SandboxConfig *v1beta1.SandboxConfig `json:"sandboxConfig,omitempty"`
}

// ReferenceObject names a secret.
type ReferenceObject struct {
	// Namespace of the secret.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the secret.
	// +optional
	Name string `json:"name,omitempty"`
}

// NodeImage is the images that a node shall have, and which of them it has. It is named after its node, comes and goes
// with it and carries its labels.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desired",description="The number of tags wanted."
// +kubebuilder:printcolumn:name="PULLING",type="integer",JSONPath=".status.pulling",description="The number of tags being pulled."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of tags pulled."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of tags that could not be pulled."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type NodeImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeImageSpec           `json:"spec,omitempty"`
	Status v1beta1.NodeImageStatus `json:"status,omitempty"`
}

// NodeImageList is a list of NodeImages.
//
// +kubebuilder:object:root=true
type NodeImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeImage `json:"items"`
}
