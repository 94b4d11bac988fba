// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// StatefulSetSpec is the desired state of a StatefulSet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.updateStrategy) || !has(self.updateStrategy.rollingUpdate) || !has(self.updateStrategy.rollingUpdate.unorderedUpdate) || (has(self.podManagementPolicy) && self.podManagementPolicy == 'Parallel')",message="can only work with Parallel PodManagementPolicyType",fieldPath=".updateStrategy.rollingUpdate.unorderedUpdate"
// +kubebuilder:validation:XValidation:rule="!has(self.updateStrategy) || !has(self.updateStrategy.rollingUpdate) || !has(self.updateStrategy.rollingUpdate.maxUnavailable) || self.updateStrategy.rollingUpdate.maxUnavailable == 1 || (has(self.podManagementPolicy) && self.podManagementPolicy == 'Parallel')",message="can only work with Parallel PodManagementPolicyType, or be 1",fieldPath=".updateStrategy.rollingUpdate.maxUnavailable"
// +kubebuilder:validation:XValidation:rule=`(has(self.serviceName) ? self.serviceName : "") == (has(oldSelf.serviceName) ? oldSelf.serviceName : "")`,message="cannot be changed",fieldPath=".serviceName"
type StatefulSetSpec struct {
	// Replicas is how many pods there should be; 1 if unset.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector says which pods are the set's. It must match the labels of the template and cannot be changed.
	Selector *metav1.LabelSelector `json:"selector"`

	// Template of the pods. The pod of ordinal 2 of the set web is named web-2.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`

	// VolumeClaimTemplates are claims that every pod gets one of, named <template>-<set>-<ordinal>. A claim waits for
	// the next pod of its ordinal, unless a v1beta1 client has set persistentVolumeClaimRetentionPolicy.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// ServiceName is the headless Service that gives the pods their names in DNS. It is not created with the set.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// PodManagementPolicy is OrderedReady or Parallel; OrderedReady if unset. OrderedReady creates and deletes one pod
	// at a time, in order; Parallel waits for none. It cannot be changed.
	// +kubebuilder:validation:Enum=OrderedReady;Parallel
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed"
	// +optional
	PodManagementPolicy appsv1.PodManagementPolicyType `json:"podManagementPolicy,omitempty"`

	// UpdateStrategy says how pods are brought to a new template.
	// +optional
	UpdateStrategy v1beta1.StatefulSetUpdateStrategy `json:"updateStrategy,omitempty"`

	// RevisionHistoryLimit is how many revisions that no pod runs are kept; 10 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// StatefulSetStatus is the observed state of a StatefulSet.
type StatefulSetStatus struct {
	// ObservedGeneration is the generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Replicas is how many pods there are, with those that are to go.
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is how many of them are ready.
	ReadyReplicas int32 `json:"readyReplicas"`

	// AvailableReplicas is how many have been ready for minReadySeconds, in no lifecycle state that holds them.
	AvailableReplicas int32 `json:"availableReplicas"`

	// CurrentReplicas is how many are of the current revision and not terminating.
	CurrentReplicas int32 `json:"currentReplicas"`

	// UpdatedReplicas is how many are of the update revision and not terminating.
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// CurrentRevision is the last revision that all pods were of.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// UpdateRevision is the revision of the template.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// CollisionCount makes names of revisions differ if their hashes do not.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// Conditions say what the controller met.
	// +optional
	Conditions []v1beta1.WorkloadCondition `json:"conditions,omitempty"`

	// LabelSelector is the selector as text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}

// StatefulSet runs pods that keep their name and their claims, and updates them in place where it can. Reserved
// ordinals, hooks, limits of creation and what becomes of claims can be said in v1beta1 only.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=sts;asts
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The desired number of pods."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.replicas",description="The number of all pods."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of pods updated."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of pods ready."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="The containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="The images of the template."
type StatefulSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   StatefulSetSpec   `json:"spec,omitempty"`
	Status StatefulSetStatus `json:"status,omitempty"`
}

// StatefulSetList is a list of StatefulSets.
//
// +kubebuilder:object:root=true
type StatefulSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []StatefulSet `json:"items"`
}
