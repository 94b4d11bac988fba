// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UnitedDeploymentSpec is the desired state of a UnitedDeployment.
// +kubebuilder:validation:XValidation:rule="has(self.template) && (has(self.template.statefulSetTemplate) || has(self.template.advancedStatefulSetTemplate) || has(self.template.cloneSetTemplate) || has(self.template.deploymentTemplate))",message="should provide one of statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate and deploymentTemplate",fieldPath=".template"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || [has(self.template.statefulSetTemplate), has(self.template.advancedStatefulSetTemplate), has(self.template.cloneSetTemplate), has(self.template.deploymentTemplate)].filter(is, is).size() <= 1",message="should provide only one of statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate and deploymentTemplate",fieldPath=".template"
// +kubebuilder:validation:XValidation:rule="!has(self.topology) || !has(self.topology.scheduleStrategy) || !has(self.topology.scheduleStrategy.type) || self.topology.scheduleStrategy.type != 'Adaptive' || !has(self.topology.scheduleStrategy.adaptive) || !has(self.topology.scheduleStrategy.adaptive.reserveUnschedulablePods) || !self.topology.scheduleStrategy.adaptive.reserveUnschedulablePods || !has(self.template) || !(has(self.template.statefulSetTemplate) || has(self.template.advancedStatefulSetTemplate))",message="only stateless workloads (Deployment and CloneSet) are supported by reserved rescheduling",fieldPath=".topology.scheduleStrategy.adaptive.reserveUnschedulablePods"
type UnitedDeploymentSpec struct {
	// Replicas is how many pods there should be in all subsets together; 1 if unset. It may be left out if every subset
	// has a number of replicas of its own.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector says which pods are the UnitedDeployment's. It must match the labels of the template.
	Selector *metav1.LabelSelector `json:"selector"`

	// Template of the workload that each subset gets.
	// +optional
	Template SubsetTemplate `json:"template,omitempty"`

	// Topology says which subsets there are, and how pods are spread over them.
	// +optional
	Topology Topology `json:"topology,omitempty"`

	// UpdateStrategy says how subsets are brought to a new template.
	// +optional
	UpdateStrategy UnitedDeploymentUpdateStrategy `json:"updateStrategy,omitempty"`

	// RevisionHistoryLimit is how many revisions that no subset runs are kept; 10 if unset.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// SubsetTemplate is the template of a workload: exactly one of its fields is set. Replicas and partition in the template
// have no effect.
type SubsetTemplate struct {
	// StatefulSetTemplate makes each subset a StatefulSet of Kubernetes.
	// +optional
	StatefulSetTemplate *StatefulSetTemplateSpec `json:"statefulSetTemplate,omitempty"`

	// AdvancedStatefulSetTemplate makes each subset a StatefulSet of apps.kruise.io.
	// +optional
	AdvancedStatefulSetTemplate *AdvancedStatefulSetTemplateSpec `json:"advancedStatefulSetTemplate,omitempty"`

	// CloneSetTemplate makes each subset a CloneSet.
	// +optional
	CloneSetTemplate *CloneSetTemplateSpec `json:"cloneSetTemplate,omitempty"`

	// DeploymentTemplate makes each subset a Deployment. It updates all its pods: partitions do not stop it.
	// +optional
	DeploymentTemplate *DeploymentTemplateSpec `json:"deploymentTemplate,omitempty"`
}

// StatefulSetTemplateSpec is the template of a StatefulSet of Kubernetes.
type StatefulSetTemplateSpec struct {
	// ObjectMeta are labels and annotations of the StatefulSet.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec of the StatefulSet.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Spec appsv1.StatefulSetSpec `json:"spec"`
}

// AdvancedStatefulSetTemplateSpec is the template of a StatefulSet of apps.kruise.io.
type AdvancedStatefulSetTemplateSpec struct {
	// ObjectMeta are labels and annotations of the StatefulSet.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec of the StatefulSet. It has the form of v1beta1 in all versions.
	Spec StatefulSetSpec `json:"spec"`
}

// CloneSetTemplateSpec is the template of a CloneSet.
type CloneSetTemplateSpec struct {
	// ObjectMeta are labels and annotations of the CloneSet.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec of the CloneSet. It has the form of v1beta1 in all versions.
	Spec CloneSetSpec `json:"spec"`
}

// DeploymentTemplateSpec is the template of a Deployment.
type DeploymentTemplateSpec struct {
	// ObjectMeta are labels and annotations of the Deployment.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec of the Deployment.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Spec appsv1.DeploymentSpec `json:"spec"`
}

// UnitedDeploymentStatus is the observed state of a UnitedDeployment.
type UnitedDeploymentStatus struct {
	// ObservedGeneration is the generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Replicas is how many pods there are in all subsets, less the reserved ones.
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is how many of them are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// UpdatedReplicas is how many are of the updated revision.
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// UpdatedReadyReplicas is how many are of the updated revision and ready.
	// +optional
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas,omitempty"`

	// ReservedPods is how many pods wait where they cannot run while others stand in for them.
	// +optional
	ReservedPods int32 `json:"reservedPods,omitempty"`

	// CurrentRevision is the last revision that all pods were of.
	CurrentRevision string `json:"currentRevision"`

	// UpdatedRevision is the revision of the template.
	// +optional
	UpdatedRevision string `json:"updatedRevision,omitempty"`

	// CollisionCount makes names of revisions differ if their hashes do not.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// SubsetStatuses are the observed states of the subsets.
	// +optional
	SubsetStatuses []UnitedDeploymentSubsetStatus `json:"subsetStatuses,omitempty"`

	// Conditions say what the controller met.
	// +optional
	Conditions []UnitedDeploymentCondition `json:"conditions,omitempty"`

	// LabelSelector is the selector as text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}

// UnitedDeploymentSubsetStatus is the observed state of a subset.
type UnitedDeploymentSubsetStatus struct {
	// Name of the subset.
	// +optional
	Name string `json:"name,omitempty"`

	// Replicas is how many pods the subset has.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// ReadyReplicas is how many of them are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Partition is how many of them are to stay at the old revision.
	// +optional
	Partition int32 `json:"partition,omitempty"`

	// ReservedPods is how many of them wait while others stand in for them.
	// +optional
	ReservedPods int32 `json:"reservedPods,omitempty"`

	// Conditions of the subset.
	// +optional
	Conditions []UnitedDeploymentSubsetCondition `json:"conditions,omitempty"`
}

// UnitedDeploymentSubsetCondition is one thing that the controller met in a subset.
type UnitedDeploymentSubsetCondition struct {
	// Type of the condition.
	Type UnitedDeploymentSubsetConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
	// Reason in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message in whole sentences.
	// +optional
	Message string `json:"message,omitempty"`
}

// UnitedDeploymentCondition is one thing that the controller met.
type UnitedDeploymentCondition struct {
	// Type of the condition.
	// +optional
	Type UnitedDeploymentConditionType `json:"type,omitempty"`
	// Status is True, False or Unknown.
	// +optional
	Status corev1.ConditionStatus `json:"status,omitempty"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
	// Reason in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message in whole sentences.
	// +optional
	Message string `json:"message,omitempty"`
}

// UnitedDeployment runs one workload in several subsets of the nodes, such as zones, with a number of pods in each.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=ud
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The desired number of pods."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.replicas",description="The number of pods."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of pods updated."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of pods ready."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type UnitedDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   UnitedDeploymentSpec   `json:"spec,omitempty"`
	Status UnitedDeploymentStatus `json:"status,omitempty"`
}

// Hub marks UnitedDeployment as the version that all others are converted through.
func (*UnitedDeployment) Hub() {}

// UnitedDeploymentList is a list of UnitedDeployments.
//
// +kubebuilder:object:root=true
type UnitedDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []UnitedDeployment `json:"items"`
}
