// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"sigs.k8s.io/controller-runtime/pkg/event"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// policyEvents passes on that other policies decide: all workloads are reconciled,
// and the API server is configured for what is protected by then.
type policyEvents struct {
	workloads, guards chan event.GenericEvent
}

func newPolicyEvents() *policyEvents {
	return &policyEvents{workloads: make(chan event.GenericEvent, 1), guards: make(chan event.GenericEvent, 1)}
}

// activated is called for each revision that becomes active. One event that was not
// received yet stands for any number.
func (p *policyEvents) activated(string) {
	for _, to := range []chan event.GenericEvent{p.workloads, p.guards} {
		select {
		case to <- event.GenericEvent{Object: &policyv1alpha1.ClusterPolicyBundle{}}:
		default:
		}
	}
}
