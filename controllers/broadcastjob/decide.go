// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	workload "github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// decided is what the policies say of a job.
type decided struct {
	// next are the nodes that get their pod now.
	next []string
	// again is when to ask again; 0 for when something changes.
	again time.Duration
}

// decide asks which nodes get their pod now. Those that are denied are none of the job's.
func (r *Reconciler) decide(ctx context.Context, s *state, next *change) decided {
	if s.counts.Waiting == 0 {
		r.hold(next, nil)
		return decided{}
	}
	in := facts(s, max(s.parallelism-(len(s.active)-len(s.unfit)), 0))
	out, record := engine.Decide(ctx, r.engine, placement.BroadcastPoint(), subject(s.job), in)
	next.held, next.decided = out.Keeps(in), &record
	r.hold(next, next.held)
	denied := len(out.Denied(in))
	s.counts.Waiting -= denied
	s.counts.Desired -= denied
	next.status.Desired -= int32(denied) //nolint:gosec // as many as there are nodes
	return decided{out.Next(in), requeue.Decided(record, s.now, out.Untils()...)}
}

func subject(job *kruise.BroadcastJob) decision.Subject {
	return decision.Subject{Group: kruise.GroupVersion.Group, Kind: "BroadcastJob", Namespace: job.Namespace, Name: job.Name, UID: string(job.UID)}
}

// facts are what the decision is made from.
func facts(s *state, room int) placement.BroadcastInput {
	return placement.BroadcastInput{
		Now: s.now.UnixNano(), Room: room, Counts: s.counts, Nodes: s.nodes,
		Job: placement.Job{
			Name: s.job.Name, Namespace: s.job.Namespace, Created: s.job.CreationTimestamp.UnixNano(), Labels: s.job.Labels, Annotations: workload.Annotations(s.job.Annotations),
		},
	}
}

// hold reports who keeps pods from being created, or that no policy does any more. There is one
// event for each new reason.
func (r *Reconciler) hold(next *change, h *placement.Hold) {
	if h == nil {
		if next.drop(kruise.BroadcastJobHeld) {
			next.event(corev1.EventTypeNormal, kruise.NotHeldReason, "No policy keeps pods from being created any more.")
		}
		return
	}
	message := h.Message
	if h.Rule != "" {
		message += " (rule " + h.Rule + ")"
	}
	if next.set(kruise.BroadcastJobHeld, h.Reason, message) {
		next.event(corev1.EventTypeWarning, string(kruise.BroadcastJobHeld), h.Reason+": "+message)
	}
}
