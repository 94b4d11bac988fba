package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PolicyMode is what becomes of the decisions of a bundle.
//
// +kubebuilder:validation:Enum=Enforce
type PolicyMode string

// PolicyModeEnforce carries the decisions out.
const PolicyModeEnforce PolicyMode = "Enforce"

// ClusterPolicyBundleSpec is the policies, and what becomes of their decisions.
type ClusterPolicyBundleSpec struct {
	// Files are the bundle: text by path. A path ends with .rego for a policy or a test, or with .json, .yaml or .yml for
	// data; it is relative and has no dot segments, so that an error names one file only.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(path, size(path) <= 256)",message="A path has at most 256 characters."
	// +kubebuilder:validation:XValidation:rule="self.all(path, path.endsWith('.rego') || path.endsWith('.json') || path.endsWith('.yaml') || path.endsWith('.yml'))",message="A path ends with .rego, .json, .yaml or .yml."
	// +kubebuilder:validation:XValidation:rule="self.all(path, path.matches('^[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$'))",message="A path is relative, of letters, digits, underscores, dots and dashes, and no part of it begins with a dot."
	// +kubebuilder:validation:XValidation:rule="self.map(path, size(self[path])).sum() <= 1000000",message="All files together have at most 1000000 characters."
	Files map[string]FileText `json:"files"`

	// Mode is Enforce: the decisions are carried out.
	//
	// +kubebuilder:default=Enforce
	// +optional
	Mode PolicyMode `json:"mode,omitempty"`
}

// FileText is what stands in one file.
//
// +kubebuilder:validation:MaxLength=262144
type FileText string

// ClusterPolicyBundleStatus is what became of the bundle.
type ClusterPolicyBundleStatus struct {
	// ObservedGeneration is the generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ActiveRevision is what is being enforced. It stays at the last good revision if a newer one fails.
	// +optional
	ActiveRevision string `json:"activeRevision,omitempty"`

	// Errors are why the newest files are not enforced, each as "file:row:col message".
	// +listType=atomic
	// +optional
	Errors []string `json:"errors,omitempty"`

	// LastActivationTime is when ActiveRevision became active.
	// +optional
	LastActivationTime *metav1.Time `json:"lastActivationTime,omitempty"`

	// Conditions say whether the newest files are enforced.
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// ClusterPolicyBundle is a bundle of policies of the platform: it extends or replaces decisions in the whole cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cpb
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the newest files are enforced."
// +kubebuilder:printcolumn:name="REVISION",type="string",JSONPath=".status.activeRevision",description="The revision being enforced."
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="Why it is ready or not."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type ClusterPolicyBundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterPolicyBundleSpec   `json:"spec"`
	Status ClusterPolicyBundleStatus `json:"status,omitempty"`
}

// ClusterPolicyBundleList is a list of ClusterPolicyBundles.
//
// +kubebuilder:object:root=true
type ClusterPolicyBundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterPolicyBundle `json:"items"`
}
