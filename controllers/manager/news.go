package manager

import (
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
)

// news passes on what happens to the policies: all workloads are looked at
// again, and a bundle that was given up is told on its object.
type news struct {
	library    *policybundle.Library
	activated  chan event.GenericEvent
	guards     chan event.GenericEvent // the same, for who tells the API server what is protected
	rolledBack chan policybundle.Key
}

func newNews() *news {
	return &news{activated: make(chan event.GenericEvent, 1), guards: make(chan event.GenericEvent, 1), rolledBack: make(chan policybundle.Key, 1024)}
}

// Activated implements engine.Observer. One event that nobody has taken yet
// stands for any number.
func (n *news) Activated(revision string) {
	klog.InfoS("Other policies decide from now on", "policies", revision)
	for _, to := range []chan event.GenericEvent{n.activated, n.guards} {
		select {
		case to <- event.GenericEvent{Object: &policyv1alpha1.ClusterPolicyBundle{}}:
		default:
		}
	}
}

// Stuck implements engine.Observer.
func (n *news) Stuck(point decision.Name, delta int) {
	if delta > 0 {
		klog.InfoS("A decision does not end though it was told to", "point", point)
	}
}

// Throttled implements engine.Observer.
func (n *news) Throttled(namespace string, point decision.Name) {
	klog.V(2).InfoS("A decision is a fallback: the policies of its namespace took too much of the processors", "namespace", namespace, "point", point)
}

// RolledBack implements engine.Observer.
func (n *news) RolledBack(r engine.Rollback) {
	klog.ErrorS(nil, "Policy bundles were given up", "bundles", r.Bundles, "reason", r.Reason)
	for _, key := range n.library.Gone() {
		select {
		case n.rolledBack <- key:
		default: // more than a thousand wait; their objects are looked at in time
		}
	}
}
