// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"slices"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/event"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/engine"
)

// policyEvents passes on that other policies decide: all workloads are reconciled,
// and the API server is configured for what is protected by then.
type policyEvents struct {
	// workloads has a channel for each kind that policies decide about, by its name: an event
	// of a channel reaches one controller alone.
	workloads map[string]chan event.GenericEvent
	guards    chan event.GenericEvent
	// writer writes what must be written before policies decide; nil before it is made.
	writer atomic.Pointer[webhookconfig.Writer]
}

func newPolicyEvents() *policyEvents {
	p := &policyEvents{
		workloads: map[string]chan event.GenericEvent{},
		guards:    make(chan event.GenericEvent, 1),
	}
	for _, kind := range slices.Concat([]string{"SidecarSet", "NodePodProbe"}, jobKinds(), []string{"UnitedDeployment"}) { // not in the table
		p.workloads[kind] = make(chan event.GenericEvent, 1)
	}
	for _, w := range kinds.ActingWorkloads() {
		p.workloads[w.Kind] = make(chan event.GenericEvent, 1)
	}
	return p
}

// beforeActivation is called for policies that are about to become active.
func (p *policyEvents) beforeActivation(ctx context.Context, next *engine.Snapshot) error {
	if w := p.writer.Load(); w != nil {
		return w.AwaitRules(ctx, next)
	}
	return nil
}

// notifyActivated is called for each revision that becomes active. One event that was not
// received yet represents any number.
func (p *policyEvents) notifyActivated(string) {
	all := []chan event.GenericEvent{p.guards}
	for _, to := range p.workloads {
		all = append(all, to)
	}
	for _, to := range all {
		select {
		case to <- event.GenericEvent{Object: &policyv1alpha1.ClusterPolicyBundle{}}:
		default:
		}
	}
}
