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

// policyEvents reports changes of the active policies: all objects whose controllers ask policies are
// reconciled, and the webhook configuration is written for the objects that the policies protect.
type policyEvents struct {
	guards chan event.GenericEvent
	// writer writes the webhook configuration before policies become active; nil before it is made.
	writer atomic.Pointer[webhookconfig.Writer]

	mu sync.Mutex
	// controllers has a channel for each controller, since only one receiver of a channel gets an event.
	controllers []chan event.GenericEvent
}

func newPolicyEvents() *policyEvents { return &policyEvents{guards: make(chan event.GenericEvent, 1)} }

// newSubscription makes a channel that gets an event for each change of the policies. An event that is not
// received yet counts for all later changes too.
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

// notifyActivated is called for each revision that becomes active. An event that is not received yet
// counts for any number of revisions.
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
