// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Deletion protection. The label of the stored object counts, so a client must remove the label before it can delete the object.
const (
	DeletionProtectionKey = "policy.kruise.io/delete-protection"
	// DeletionProtectionAlways refuses every delete.
	DeletionProtectionAlways = "Always"
	// DeletionProtectionCascading refuses a delete that would take other active objects along.
	DeletionProtectionCascading = "Cascading"
)

// PodUnavailableBudget.
const (
	// PodRelatedBudgetKey annotates a pod with its budget; the legacy key is still read.
	PodRelatedBudgetKey       = "pub.kruise.io/related-pub"
	PodRelatedBudgetLegacyKey = "kruise.io/related-pub"
	// PodNoProtectKey, with a true value, takes a pod out of its budget.
	PodNoProtectKey = "pub.kruise.io/no-protect"
	// BudgetProtectOperationsKey and BudgetProtectTotalReplicasKey are what v1alpha1 budgets carry instead of fields.
	BudgetProtectOperationsKey    = "kruise.io/pub-protect-operations"
	BudgetProtectTotalReplicasKey = "pub.kruise.io/protect-total-replicas"
	// UnavailablePodLabelPrefix begins labels that make a budget count a pod as unavailable even if it is ready.
	UnavailablePodLabelPrefix = "unavailable-pod.kruise.io/"
)
