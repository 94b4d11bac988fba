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
	writers *inflight.Share // nil without a Window
	writing time.Time       // when all was gathered and writing began
	again   requeueTimes
	created createdPods
	pulls   func(node string) []points.ImagePull // nil if nothing is pulled ahead
	journal []decision.Record
	beside  *Decisions // of WriteBeside
	spared  keptPods   // of WriteBeside
	// unknown says of namespaces why policies cannot be told their labels: their pods are held.
	unknown map[string]string
	// scaleHolds are those of rollout/scale that are not how scaling goes.
	scaleHolds []decision.Hold
	// surgeFreed is the reason for which pods that the update creates were held until this round, which tells that no policy holds the
	// scaling any more; else "".
	surgeFreed string
}

// createdPods keeps the pods that the round created.
type createdPods struct {
	mu   sync.Mutex
	pods []*corev1.Pod
}

func (c *createdPods) addPod(pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods = append(c.pods, pod)
}

// requeueTimes keeps the earliest time to look again.
type requeueTimes struct {
	mu    sync.Mutex
	after time.Duration
}

// RequeueAfter has the workload reconciled after some time, or earlier.
func (r *Round) RequeueAfter(d time.Duration) {
	r.again.mu.Lock()
	defer r.again.mu.Unlock()
	if d > 0 && (r.again.after == 0 || d < r.again.after) {
		r.again.after = d
	}
}

// SetPulls has policies know which images the nodes of old pods do not have yet. A function
// tells them of a node.
func (r *Round) SetPulls(of func(node string) []points.ImagePull) { r.pulls = of }

// requeueForHold has the workload decided again when a hold may have changed by time.
func (r *Round) requeueForHold(h decision.Hold) {
	if t, err := time.Parse(time.RFC3339, h.Until); err == nil {
		r.RequeueAfter(max(t.Sub(r.Now), time.Second))
	}
}

// undecidedAgain is when a decision that was not made is asked for again.
const undecidedAgain = 5 * time.Second

// RecordDecision keeps a decision for explanations. One that was not made, because a policy failed
// or took too long, is asked for again: nothing else may happen that would.
func (r *Round) RecordDecision(rec decision.Record) {
	r.journal = append(r.journal, rec)
	if rec.Outcome != decision.Decided {
		r.RequeueAfter(undecidedAgain)
	}
}

// EvaluatePoint asks a point about the workload of a round, and notes the decision.
func EvaluatePoint[In, Out any](ctx context.Context, r *Round, f *Facts, p decision.Point[In, Out], in In) (Out, decision.Record) {
	out, rec := engine.Decide(ctx, r.c.Engine, p, f.Subject, in)
	r.RecordDecision(rec)
	return out, rec
}

// CachedClient writes, and reads from the cache.
func (r *Round) CachedClient() client.Client { return r.c.Client }

// LiveReader reads past the cache.
func (r *Round) LiveReader() client.Reader { return r.c.Live }

// KindMemory is what the kind itself keeps of the workload; see Type.
func (r *Round) KindMemory() any { return r.memory.own }

// NodeTopology is where nodes are.
func (r *Round) NodeTopology() *facts.Topology { return r.c.topology }

// RecordNormal records an event of the workload.
func (r *Round) RecordNormal(reason, message string) {
	r.c.Events.Event(r.Workload, corev1.EventTypeNormal, reason, message)
}

// RecordWarning records an event of the workload.
func (r *Round) RecordWarning(reason, message string) {
	r.c.Events.Event(r.Workload, corev1.EventTypeWarning, reason, message)
}
