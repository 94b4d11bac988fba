// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine/decision"
)

// lifeBudget is the name of the budget of a Harness.
const lifeBudget = "life"

// ProtectPods puts the webhooks of pods before the API server, and runs the controller of budgets. It restarts the controller of
// the workload, which then checks budgets before updates in place. Budgets are counted before each round of that controller. Each of its writes
// that leaves fewer pods available than the budget requires is a breach.
func (l *Harness) ProtectPods() {
	l.Helper()
	gates, err := features.New()
	l.requireNoError(err)
	l.requireNoError(gates.Set("PodUnavailableBudgetUpdateGate=true"))
	l.requireNoError(gates.ResolveDependencies(""))
	c, ctx, namespace := l.cluster, context.Background(), l.CurrentWorkload().GetNamespace()
	g := &Simulation{options: options{gates: gates}, engine: l.Engine, cluster: c, namespace: labels.Set{corev1.LabelMetadataName: namespace}}
	g.judge = &invariantChecker{s: g, single: map[string]decision.Hold{}, exempt: map[string]bool{}}
	c.watchers = nil
	named := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lifeBudget}}
	budget, err := g.setupProtection(ctx, ClusterState{Workload: c.workload, Budgets: []*policy.PodUnavailableBudget{named}}, c.now)
	l.requireNoError(err)
	l.guard, l.guards = g, c.watchers
	l.Options = append(l.Options, rollout.WithBudget(budget))
	l.RestartController()
}

// SetBudget replaces the budget of the pods. The controller of the workload sees at once which pods it
// protects. No webhook checks writes of a pod's status, with which an update in place begins, so the budget of a pod applies
// from when the cache shows the annotation that names it.
func (l *Harness) SetBudget(spec policy.PodUnavailableBudgetSpec) {
	l.Helper()
	l.DropBudget()
	b := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: l.CurrentWorkload().GetNamespace(), Name: lifeBudget, Generation: 1}, Spec: spec}
	l.requireNoError(l.cluster.storeObject(context.Background(), b))
	l.countBudgets()
	l.ShowAll(&corev1.Pod{})
}

// DropBudget deletes the budget, if there is one.
func (l *Harness) DropBudget() {
	l.Helper()
	b := &policy.PodUnavailableBudget{}
	key := client.ObjectKey{Namespace: l.CurrentWorkload().GetNamespace(), Name: lifeBudget}
	if err := l.cluster.server.Get(context.Background(), key, b); err != nil {
		l.requireNoError(client.IgnoreNotFound(err))
		return
	}
	b.Finalizers = nil
	l.requireNoError(l.cluster.server.Update(context.Background(), b))
	l.requireNoError(client.IgnoreNotFound(l.cluster.server.Delete(context.Background(), b)))
}

// countBudgets counts the pods of the budget, and reports whether that changes its status.
func (l *Harness) countBudgets() bool {
	l.Helper()
	if l.guard == nil {
		return false
	}
	l.guard.counters.agenda.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: l.CurrentWorkload().GetNamespace(), Name: lifeBudget}})
	did, _, err := l.guard.counters.reconcileDue(context.Background())
	l.requireNoError(err)
	l.noteIgnoredPods()
	return did
}

// noteIgnoredPods makes the checker count pods as available that the budget ignores and that are available now. Until the budget is counted
// again, it does not notice which of them are deleted; nor does OpenKruise.
func (l *Harness) noteIgnoredPods() {
	j := l.guard.judge
	j.ignored = map[types.UID]bool{}
	for _, p := range l.ListPods() {
		if b := j.budgetOf(p); b != nil && isIgnored(b, p) && availability.IsAvailable(p) {
			j.ignored[p.UID] = true
		}
	}
}

// findOverdraw returns what a write violates of the budget, "" for nothing.
func (l *Harness) findOverdraw(was, now *corev1.Pod) string {
	if l.guard == nil {
		return ""
	}
	return l.guard.judge.findOverdraw(was, now)
}

// LetAllWritesPass removes the webhooks of ProtectPods, to test that a breach is found.
func (l *Harness) LetAllWritesPass() { l.cluster.admits = nil }
