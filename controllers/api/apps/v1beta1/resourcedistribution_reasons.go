// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ResourceDistributionConditionType is the type of a condition of a ResourceDistribution: a kind of failure.
type ResourceDistributionConditionType string

// The conditions of a ResourceDistribution, in the order in which they stand in its status.
const (
	// ResourceDistributionGetResourceFailed is of copies that could not be read.
	ResourceDistributionGetResourceFailed ResourceDistributionConditionType = "GetResourceFailed"
	// ResourceDistributionCreateResourceFailed is of copies that could not be created.
	ResourceDistributionCreateResourceFailed ResourceDistributionConditionType = "CreateResourceFailed"
	// ResourceDistributionUpdateResourceFailed is of copies that could not be updated.
	ResourceDistributionUpdateResourceFailed ResourceDistributionConditionType = "UpdateResourceFailed"
	// ResourceDistributionDeleteResourceFailed is of copies that could not be deleted.
	ResourceDistributionDeleteResourceFailed ResourceDistributionConditionType = "DeleteResourceFailed"
	// ResourceDistributionConflictOccurred is True if objects of the same name exist that another client made. The controller does not change them.
	ResourceDistributionConflictOccurred ResourceDistributionConditionType = "ConflictOccurred"
	// ResourceDistributionNamespaceNotExists is of namespaces that are missing or terminating.
	ResourceDistributionNamespaceNotExists ResourceDistributionConditionType = "NamespaceNotExists"
)

const (
	// ResourceDistributionSucceededReason is the reason of a condition that is False.
	ResourceDistributionSucceededReason = "Succeeded"
	// ResourceDistributionNamespaceNotExistsReason is the reason of ResourceDistributionNamespaceNotExists.
	ResourceDistributionNamespaceNotExistsReason = "namespace not found or is terminating"
)
