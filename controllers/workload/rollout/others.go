// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/controllers/workload/disruption"
	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// MayDisrupt evaluates plan and rank for pods that the workload does not count among its own. The type of the strategy does
// not matter, since these pods are not updated.
func (r *Round) MayDisrupt(ctx context.Context, f *Facts, pods []*corev1.Pod) disruption.Result {
	strategy := f.Strategy
	strategy.Type = "RollingUpdate"
	var labels map[string]map[string]string
	var unknown map[string]decision.MissingFact
	if _, ok := f.kind.(KindWithSharedPods); ok {
		var err error
		if labels, unknown, err = r.namespaceLabels(ctx, pods); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "reading what policies see of pods", "kind", f.Subject.Kind, "name", f.Subject.Name)
			for _, p := range pods {
				unknown[p.Namespace] = decision.MissingFact{Fact: namespaces.LabelsFact, Reason: namespaces.UnknownReason, Message: "The labels of the namespace cannot be read; they are read again."}
			}
		}
	}
	a := disruption.EvaluatePods(ctx, r.c.Engine, disruption.Request{
		Subject: f.Subject, Workload: f.WorkloadFacts(), Now: f.Now, Strategy: strategy, Pods: pods, Topology: r.c.topology,
		NamespaceLabels: labels, UnknownNamespaces: unknown,
		Revisions: points.Revisions{Current: f.Templates.CurrentRevision(), Update: f.Templates.UpdateRevision()},
	})
	for _, rec := range a.Records {
		r.RecordDecision(rec)
	}
	r.RequeueAfter(a.Again)
	return a
}
