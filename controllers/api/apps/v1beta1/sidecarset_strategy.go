// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// SidecarSetUpdateStrategyType says whether running pods are updated.
// +kubebuilder:validation:Enum=RollingUpdate;NotUpdate
type SidecarSetUpdateStrategyType string

const (
	// RollingUpdateSidecarSetStrategyType updates the images of running pods by and by.
	RollingUpdateSidecarSetStrategyType SidecarSetUpdateStrategyType = "RollingUpdate"
	// NotUpdateSidecarSetStrategyType leaves running pods as they are: only new pods get what is new.
	NotUpdateSidecarSetStrategyType SidecarSetUpdateStrategyType = "NotUpdate"
)

// SidecarSetUpdateStrategy says how pods that have the containers get new images. Nothing but images is changed in a
// running pod.
// +kubebuilder:validation:XValidation:rule="(has(self.type) && self.type == 'NotUpdate') || !has(self.selector) || !has(self.partition) || self.partition == 0 || self.partition == '0%'",message="partition and selector can not be used together",fieldPath=".partition"
type SidecarSetUpdateStrategy struct {
	// Type is RollingUpdate or NotUpdate; RollingUpdate if unset.
	// +optional
	Type SidecarSetUpdateStrategyType `json:"type,omitempty"`

	// Paused stops the update. New pods still get the containers.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Selector limits the update to these of the matched pods; all of them if unset. It cannot be set together with
	// partition.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Partition is how many pods stay at the old revision, as a number or as a percentage of the matched pods, rounded
	// up; 0 if unset. A percentage below 100% never keeps all of several pods.
	// +optional
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// MaxUnavailable is how many pods may be unavailable for being updated, as a number or as a percentage of the
	// matched pods, rounded up; 1 if unset.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// PriorityStrategy says which pods come first.
	// +optional
	PriorityStrategy *UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`

	// ScatterStrategy spreads pods with these labels over the whole update. The value * stands for each value there is.
	// +optional
	ScatterStrategy CloneSetUpdateScatterStrategy `json:"scatterStrategy,omitempty"`
}

// SidecarSetInjectionStrategy says what new pods get.
type SidecarSetInjectionStrategy struct {
	// Paused lets new pods start without the containers. The update of other pods goes on.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Revision is what new pods get instead of the latest revision.
	// +optional
	Revision *SidecarSetInjectRevision `json:"revision,omitempty"`
}

// SidecarSetInjectRevisionPolicy says which new pods get a named revision.
// +kubebuilder:validation:Enum=Always;Partial
type SidecarSetInjectRevisionPolicy string

const (
	// AlwaysSidecarSetInjectRevisionPolicy gives it to all of them.
	AlwaysSidecarSetInjectRevisionPolicy SidecarSetInjectRevisionPolicy = "Always"
	// PartialSidecarSetInjectRevisionPolicy gives it to those that updateStrategy.selector does not select, or else to
	// as many as updateStrategy.partition says in percent; the others get the latest revision.
	PartialSidecarSetInjectRevisionPolicy SidecarSetInjectRevisionPolicy = "Partial"
)

// SidecarSetInjectRevision names a revision, by one of two names. The latest is used if it does not exist any more.
// +kubebuilder:validation:XValidation:rule="(has(self.customVersion) && size(self.customVersion) > 0) || (has(self.revisionName) && size(self.revisionName) > 0)",message="customVersion or revisionName is required"
type SidecarSetInjectRevision struct {
	// CustomVersion is the spec.customVersion that the revision was made with.
	// +optional
	CustomVersion *string `json:"customVersion,omitempty"`

	// RevisionName is the name of the ControllerRevision.
	// +optional
	RevisionName *string `json:"revisionName,omitempty"`

	// Policy is Always or Partial; Always if unset.
	// +kubebuilder:default=Always
	// +optional
	Policy SidecarSetInjectRevisionPolicy `json:"policy,omitempty"`
}

// SidecarSetPatchPolicyType is what happens to an annotation that the pod already has.
// +kubebuilder:validation:Enum=Retain;Overwrite;MergePatchJson
type SidecarSetPatchPolicyType string

const (
	// SidecarSetRetainPatchPolicy leaves it as it is.
	SidecarSetRetainPatchPolicy SidecarSetPatchPolicyType = "Retain"
	// SidecarSetOverwritePatchPolicy replaces it.
	SidecarSetOverwritePatchPolicy SidecarSetPatchPolicyType = "Overwrite"
	// SidecarSetMergePatchJSONPatchPolicy merges both values, which must be JSON, as a JSON merge patch does (RFC 7396).
	SidecarSetMergePatchJSONPatchPolicy SidecarSetPatchPolicyType = "MergePatchJson"
)

// SidecarSetPatchPodMetadata are annotations that pods get. A whitelist of the administrator says which are allowed.
// +kubebuilder:validation:XValidation:rule="has(self.annotations) && size(self.annotations) > 0",message="at least one annotation is required",fieldPath=".annotations"
type SidecarSetPatchPodMetadata struct {
	// Annotations by key. No key may stand in two of these patches.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// PatchPolicy is Retain, Overwrite or MergePatchJson; Retain if unset.
	// +optional
	PatchPolicy SidecarSetPatchPolicyType `json:"patchPolicy,omitempty"`
}
