// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"k8s.io/klog/v2"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
)

// mostRolledBack is how many bundles that were taken out may wait to be reported.
const mostRolledBack = 1024

// observer logs what happens to the policies, and reports bundles that were taken
// out.
type observer struct {
	host      *Host
	activated func(revision string)
}

// Activated implements engine.Observer.
func (o observer) Activated(revision string) {
	klog.InfoS("Other policies decide from now on", "policies", revision)
	o.activated(revision)
}

// Stuck implements engine.Observer.
func (o observer) Stuck(point decision.Name, delta int) {
	if delta > 0 {
		klog.InfoS("A decision does not end though its time is over", "point", point)
	}
}

// Throttled implements engine.Observer.
func (o observer) Throttled(namespace string, point decision.Name) {
	klog.V(2).InfoS("A decision is a fallback: the policies of its namespace took too much of the processors", "namespace", namespace, "point", point)
}

// RolledBack implements engine.Observer.
func (o observer) RolledBack(r engine.Rollback) {
	klog.ErrorS(nil, "Policy bundles were given up", "bundles", r.Bundles, "reason", r.Reason)
	for _, key := range o.host.library.Gone() {
		select {
		case o.host.rolledBack <- key:
		default: // the channel is full; the bundle's next reconcile reports it
		}
	}
}
