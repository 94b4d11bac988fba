// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ResourcesPolicyMode is how the resources of several containers become one number.
// +kubebuilder:validation:Enum=sum;max
type ResourcesPolicyMode string

const (
	// ResourcesPolicyModeSum adds them up.
	ResourcesPolicyModeSum ResourcesPolicyMode = "sum"
	// ResourcesPolicyModeMax takes the largest.
	ResourcesPolicyModeMax ResourcesPolicyMode = "max"
)

// ResourcesPolicy computes the resources of a container from those of the pod's other containers.
type ResourcesPolicy struct {
	// TargetContainersMode is sum or max: how the resources of the containers become cpu and memory of the expressions.
	TargetContainersMode ResourcesPolicyMode `json:"targetContainersMode"`

	// TargetContainersNameRegex selects the containers to compute from, by a part of their name. Containers of
	// SidecarSets are never among them. A pod is refused if none matches.
	// +kubebuilder:default=".*"
	// +optional
	TargetContainersNameRegex string `json:"targetContainersNameRegex,omitempty"`

	// ResourcesExpr are the expressions, for limits, requests or both.
	ResourcesExpr ResourcesExpr `json:"resourcesExpr"`
}

// ResourcesExpr are the expressions of limits and requests.
// +kubebuilder:validation:XValidation:rule="has(self.limits) || has(self.requests)",message="at least one of limits and requests is required"
type ResourcesExpr struct {
	// Limits of the container. One whose input is unlimited in any of the other containers is not set.
	// +optional
	Limits *ResourceExprLimits `json:"limits,omitempty"`

	// Requests of the container. What another container does not request counts as 0.
	// +optional
	Requests *ResourceExprRequests `json:"requests,omitempty"`
}

// ResourceExprLimits are the expressions of the limits.
type ResourceExprLimits struct {
	// CPU is an expression of the variable cpu, such as "max(cpu*50%, 200m)". A plain number is in cores. No limit if
	// empty.
	// +optional
	CPU string `json:"cpu,omitempty"`

	// Memory is an expression of the variable memory, such as "memory/4+64Mi". A plain number is in bytes. No limit if
	// empty.
	// +optional
	Memory string `json:"memory,omitempty"`
}

// ResourceExprRequests are the expressions of the requests.
type ResourceExprRequests struct {
	// CPU is an expression of the variable cpu, such as "cpu*10%". A plain number is in cores. No request if empty.
	// +optional
	CPU string `json:"cpu,omitempty"`

	// Memory is an expression of the variable memory, such as "min(memory, 1Gi)". A plain number is in bytes. No request
	// if empty.
	// +optional
	Memory string `json:"memory,omitempty"`
}
