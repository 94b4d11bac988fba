// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// Conditions of pods that a budget may protect: ready pods, since a budget does not count others. The API server compares
// specs, so that updates of statuses and labels do not call the webhook.
const (
	inBudget = "oldObject.metadata.?annotations.orValue({}).exists(k, k in ['pub.kruise.io/related-pub', 'kruise.io/related-pub'])"
	// The values that strconv.ParseBool reads as true.
	protects = "!(oldObject.metadata.?annotations['pub.kruise.io/no-protect'].orValue('') in ['1', 't', 'T', 'true', 'TRUE', 'True'])"
	ready    = "oldObject.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'True')"
	changes  = "(request.operation == 'DELETE' || object.spec != oldObject.spec || " +
		"object.metadata.?labels.orValue({}).exists(k, k.startsWith('unavailable-pod.kruise.io/') && !(k in oldObject.metadata.?labels.orValue({}))))"
)

// matchedRequests describes the requests that budgets decide about, by the gates that are on.
func matchedRequests(deletes, updates bool) []match.Stored {
	var operations []string
	if deletes {
		operations = append(operations, protection.Delete, protection.Evict)
	}
	if updates {
		operations = append(operations, protection.Update, protection.Resize)
	}
	if len(operations) == 0 {
		return nil
	}
	return []match.Stored{{Operations: operations, Namespaces: match.WithBudgets, Conditions: []string{inBudget, protects, ready, changes}}}
}
