// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/workload/disruption"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// MayDisrupt asks plan and rank about pods that the workload does not count among its own. A strategy that updates no pod
// is none against it: the pods are not updated.
func (r *Round) MayDisrupt(ctx context.Context, f *Facts, pods []*corev1.Pod) disruption.Answer {
	strategy := f.Strategy
	strategy.Type = "RollingUpdate"
	a := disruption.Ask(ctx, r.c.engine, disruption.Question{
		Subject: f.Subject, Workload: f.WorkloadFacts(), Now: f.Now, Strategy: strategy, Pods: pods, Topology: r.c.topology,
		Revisions: points.Revisions{Current: f.Templates.Current(), Update: f.Templates.Update()},
	})
	for _, rec := range a.Records {
		r.Note(rec)
	}
	r.Again(a.Again)
	return a
}
