// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of events on a PodUnavailableBudget. The failure is a Warning.
const (
	BudgetNoPodsReason                   = "NoPods"
	BudgetCalculateExpectedPodFailReason = "CalculateExpectedPodCountFailed"
)

// Reasons of events on a pod, all Warnings.
const (
	// BudgetNotDeletedReason is of a pod that was given leave to go and is still there 20 seconds later.
	BudgetNotDeletedReason = "NotDeleted"
	// BudgetPreventPodDeletionReason is of a pod that was refused.
	BudgetPreventPodDeletionReason = "PubPreventPodDeletion"
)

// Messages of events and refusals, word for word those of OpenKruise: dashboards and alerts match on them.
const (
	BudgetNoPodsMessage = "No matching pods found"
	// BudgetNotDeletedMessage takes the namespace and the name of the budget.
	BudgetNotDeletedMessage         = "Pod was expected by PUB %s/%s to be deleted but it wasn't"
	BudgetPreventPodDeletionMessage = "openkruise pub prevents pod deletion"
	// BudgetUnavailableAllowedMessage refuses a pod because no more may be unavailable.
	BudgetUnavailableAllowedMessage = "pub unavailable allowed is negative"
)
