// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// decided is the answer of the policies about a job.
type decided struct {
	// next are the nodes that get their pod now.
	next []string
	// again is when to decide again; 0 for when something changes.
	again time.Duration
}

// decideNodes asks the policies which nodes get their pod now. The job does not count nodes that are denied.
func (r *Reconciler) decideNodes(ctx context.Context, s *state, next *change) decided {
	if s.counts.Waiting == 0 {
		r.reportHold(next, nil)
		return decided{}
	}
	in := buildBroadcastInput(s, max(s.parallelism-(len(s.active)-len(s.unfit)), 0))
	out, record := engine.Decide(ctx, r.Engine, placement.BroadcastPoint(), decisionSubject(s.job), in)
	next.held, next.decided = out.ReportedHold(in), &record
	r.reportHold(next, next.held)
	denied := len(out.DeniedNodes(in))
	s.counts.Waiting -= denied
	s.counts.Desired -= denied
	next.status.Desired -= int32(denied) //nolint:gosec // as many as there are nodes
	return decided{out.Next(in), requeue.DecisionDelay(record, s.now, out.RequeueTimes()...)}
}

func decisionSubject(job *kruise.BroadcastJob) decision.Subject {
	return facts.ObjectSubject(kruise.GroupVersion.Group, "BroadcastJob", job)
}

// buildBroadcastInput returns the input of the decision.
func buildBroadcastInput(s *state, room int) placement.BroadcastInput {
	return placement.BroadcastInput{
		Now: s.now.UnixNano(), Room: room, Counts: s.counts, Nodes: s.nodes,
		Job: placement.Job{
			Name: s.job.Name, Namespace: s.job.Namespace, Created: s.job.CreationTimestamp.UnixNano(), Labels: s.job.Labels, Annotations: facts.VisibleAnnotations(s.job.Annotations),
		},
	}
}

// reportHold reports which policy prevents pods from being created, or that none does any more. There
// is one event for each new reason.
func (r *Reconciler) reportHold(next *change, h *placement.Hold) {
	if h == nil {
		if next.removeCondition(kruise.BroadcastJobHeld) {
			next.addEvent(corev1.EventTypeNormal, kruise.NotHeldReason, "No policy keeps pods from being created any more.")
		}
		return
	}
	message := h.Message
	if h.Rule != "" {
		message += " (rule " + h.Rule + ")"
	}
	if next.setCondition(kruise.BroadcastJobHeld, h.Reason, message) {
		next.addEvent(corev1.EventTypeWarning, string(kruise.BroadcastJobHeld), h.Reason+": "+message)
	}
}
