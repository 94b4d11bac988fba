// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/event"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/engine"
)

// policyEvents passes on that other policies decide: all objects whose controllers ask policies are reconciled,
// and the API server is configured for what is protected by then.
type policyEvents struct {
	guards chan event.GenericEvent
	// writer writes what must be written before policies decide; nil before it is made.
	writer atomic.Pointer[webhookconfig.Writer]

	mu sync.Mutex
	// controllers has a channel for each controller: an event of a channel reaches one of them alone.
	controllers []chan event.GenericEvent
}

func newPolicyEvents() *policyEvents { return &policyEvents{guards: make(chan event.GenericEvent, 1)} }

// newSubscription makes a channel that has an event for each change of the policies. An event that is not received
// yet is for all changes since.
func (p *policyEvents) newSubscription() <-chan event.GenericEvent {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := make(chan event.GenericEvent, 1)
	p.controllers = append(p.controllers, to)
	return to
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
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, to := range slices.Concat(p.controllers, []chan event.GenericEvent{p.guards}) {
		select {
		case to <- event.GenericEvent{Object: &policyv1alpha1.ClusterPolicyBundle{}}:
		default:
		}
	}
}
