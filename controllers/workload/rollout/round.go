// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Round is one reconcile of a workload: what is needed to act, and a log of what was
// decided. What is known of the workload is in Facts.
type Round struct {
	c *Controller
	// Workload is the object as it was read. Writing its status brings it up to date.
	Workload client.Object
	Spec     Spec
	Now      time.Time

	memory  *Memory
	writers *inflight.Holder // nil without a Window
	writing time.Time        // when all was gathered and writing began
	again   again
	created created
	pulls   func(node string) []points.ImagePull // nil if nothing is pulled ahead
	journal []decision.Record
	beside  *Decisions // of WriteBeside
	spared  kept       // of WriteBeside
	// unknown says of namespaces why policies cannot be told their labels: their pods are held.
	unknown map[string]string
	// scaleHolds are those of rollout/scale that are not how scaling goes.
	scaleHolds []decision.Hold
	// surgeFreed is the reason for which pods that the update creates were held until this round, which tells that no policy holds the
	// scaling any more; else "".
	surgeFreed string
}

// created keeps the pods that the round created.
type created struct {
	mu   sync.Mutex
	pods []*corev1.Pod
}

func (c *created) add(pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods = append(c.pods, pod)
}

// again keeps the earliest time to look again.
type again struct {
	mu    sync.Mutex
	after time.Duration
}

// Again has the workload reconciled after some time, or earlier.
func (r *Round) Again(d time.Duration) {
	r.again.mu.Lock()
	defer r.again.mu.Unlock()
	if d > 0 && (r.again.after == 0 || d < r.again.after) {
		r.again.after = d
	}
}

// Pulls has policies know which images the nodes of old pods do not have yet. A function
// tells them of a node.
func (r *Round) Pulls(of func(node string) []points.ImagePull) { r.pulls = of }

// until has the workload decided again when a hold may have changed by time.
func (r *Round) until(h decision.Hold) {
	if t, err := time.Parse(time.RFC3339, h.Until); err == nil {
		r.Again(max(t.Sub(r.Now), time.Second))
	}
}

// undecidedAgain is when a decision that was not made is asked for again.
const undecidedAgain = 5 * time.Second

// Note keeps a decision for explanations. One that was not made, because a policy failed
// or took too long, is asked for again: nothing else may happen that would.
func (r *Round) Note(rec decision.Record) {
	r.journal = append(r.journal, rec)
	if rec.Outcome != decision.Decided {
		r.Again(undecidedAgain)
	}
}

// Ask asks a point about the workload of a round, and notes the decision.
func Ask[In, Out any](ctx context.Context, r *Round, f *Facts, p decision.Point[In, Out], in In) (Out, decision.Record) {
	out, rec := engine.Decide(ctx, r.c.engine, p, f.Subject, in)
	r.Note(rec)
	return out, rec
}

// Client writes, and reads from the cache.
func (r *Round) Client() client.Client { return r.c.client }

// Live reads past the cache.
func (r *Round) Live() client.Reader { return r.c.live }

// Memory is what the kind itself keeps of the workload; see Type.
func (r *Round) Memory() any { return r.memory.own }

// Topology is where nodes are.
func (r *Round) Topology() *facts.Topology { return r.c.topology }

// Normal records an event of the workload.
func (r *Round) Normal(reason, message string) {
	r.c.events.Event(r.Workload, corev1.EventTypeNormal, reason, message)
}

// Warn records an event of the workload.
func (r *Round) Warn(reason, message string) {
	r.c.events.Event(r.Workload, corev1.EventTypeWarning, reason, message)
}
