// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"slices"

	"k8s.io/klog/v2"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

// mostRolledBack is how many removed bundles may wait to be reported.
const mostRolledBack = 1024

// observer logs events of the engine, and reports bundles that were removed.
type observer struct {
	host      *Host
	activated func(revision string)
}

// RevisionActivated implements engine.Observer.
func (o observer) RevisionActivated(revision string) {
	klog.InfoS("Other policies decide from now on", "policies", bundle.ShortRevision(revision))
	o.activated(revision)
}

// EvaluationStuck implements engine.Observer.
func (o observer) EvaluationStuck(point decision.Name, delta int) {
	if delta > 0 {
		klog.InfoS("A decision does not end though its time is over", "point", point)
	}
}

// DecisionThrottled implements engine.Observer.
func (o observer) DecisionThrottled(namespace string, point decision.Name) {
	klog.V(2).InfoS("A decision is a fallback: the policies of its namespace took too much of the processors", "namespace", namespace, "point", point)
}

// BundlesWithheld implements engine.Observer.
func (o observer) BundlesWithheld(bundles bundle.Set) {
	if len(bundles) > 0 {
		klog.InfoS("Policy bundles that were rolled back are withheld: decisions that they take part in are refused or held until the bundles are changed or deleted", "bundles", bundle.ShortIDs(bundles.IDs()))
	}
}

// RolledBack implements engine.Observer.
func (o observer) RolledBack(r engine.Rollback) {
	klog.ErrorS(nil, "Policy bundles were rolled back", "bundles", bundle.ShortIDs(r.Bundles), "replacements", bundle.ShortIDs(r.Replacements), "withheld", bundle.ShortIDs(r.Withheld), "refusedOrHeld", r.Points, "reason", r.Reason)
	o.host.reportChanged(o.host.library.DrainRemoved())
}

// reportInvalid logs that the bundles of a namespace do not compile with those of the platform, and reports them:
// SyncBundle says why.
func (h *Host) reportInvalid(namespace string, err error) {
	klog.ErrorS(err, "Decisions about a namespace are strict fallbacks, as its policy bundles do not compile any more", "namespace", namespace)
	keys := h.library.BundleKeys()
	h.reportChanged(slices.DeleteFunc(keys, func(k Key) bool { return k.Namespace != namespace }))
}

// reportCompiledLate makes all bundles be followed again: a bundle that was refused, because its compilation took too
// long, is compiled by now.
func (h *Host) reportCompiledLate() {
	klog.InfoS("Policies are compiled that took too long: they are put in again")
	h.reportChanged(h.library.BundleKeys())
}

// reportChanged makes bundles whose stages changed be reconciled.
func (h *Host) reportChanged(keys []Key) {
	for _, key := range keys {
		select {
		case h.rolledBack <- key:
		default: // the channel is full; the bundle's next reconcile reports it
		}
	}
}
