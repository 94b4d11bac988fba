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

// Round is one reconcile of a workload: what it needs to act, and a log of its
// decisions. Facts has the facts of the workload.
type Round struct {
	c *Controller
	// Workload is the object as it was read. Writing its status updates it.
	Workload client.Object
	Spec     Spec
	Now      time.Time

	memory  *Memory
	writers *inflight.Share // nil without a Window
	writing time.Time       // when the facts were complete and writing began
	again   requeueTimes
	created createdPods
	pulls   func(node string) []points.ImagePull // nil if nothing is pulled ahead
	journal []decision.Record
	beside  *Decisions // of WriteBeside
	spared  keptPods   // of WriteBeside
	// scaleHolds are the holds of rollout/scale that come from users.
	scaleHolds []decision.Hold
	// surgeFreed is the reason why the pods that the update creates were held until this round, if this round reports that no policy holds the
	// scaling any more; otherwise "".
	surgeFreed string
}

// createdPods are the pods that the round created.
type createdPods struct {
	mu   sync.Mutex
	pods []*corev1.Pod
}

func (c *createdPods) addPod(pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods = append(c.pods, pod)
}

// requeueTimes keeps the earliest time to reconcile again.
type requeueTimes struct {
	mu    sync.Mutex
	after time.Duration
}

// RequeueAfter requeues the workload after a delay, unless it is requeued earlier.
func (r *Round) RequeueAfter(d time.Duration) {
	r.again.mu.Lock()
	defer r.again.mu.Unlock()
	if d > 0 && (r.again.after == 0 || d < r.again.after) {
		r.again.after = d
	}
}

// SetPulls sets a function that returns which images a node does not have yet. Policies
// read that for the nodes of old pods.
func (r *Round) SetPulls(of func(node string) []points.ImagePull) { r.pulls = of }

// requeueForHold requeues the workload for the time when a hold may change.
func (r *Round) requeueForHold(h decision.Hold) {
	if t, err := time.Parse(time.RFC3339, h.Until); err == nil {
		r.RequeueAfter(max(t.Sub(r.Now), time.Second))
	}
}

// undecidedAgain is the time after which a decision that was not made is evaluated again.
const undecidedAgain = 5 * time.Second

// RecordDecision keeps a decision for explanations. If it was not made, because a policy failed
// or took too long, it requeues the workload, since no event may start another round.
func (r *Round) RecordDecision(rec decision.Record) {
	r.journal = append(r.journal, rec)
	if rec.Outcome != decision.Decided {
		r.RequeueAfter(undecidedAgain)
	}
}

// EvaluatePoint evaluates a point for the workload of a round, and records the decision.
func EvaluatePoint[In, Out any](ctx context.Context, r *Round, f *Facts, p decision.Point[In, Out], in In) (Out, decision.Record) {
	out, rec := engine.Decide(ctx, r.c.Engine, p, f.Subject, in)
	r.RecordDecision(rec)
	return out, rec
}

// CachedClient writes, and reads from the cache.
func (r *Round) CachedClient() client.Client { return r.c.Client }

// LiveReader reads past the cache.
func (r *Round) LiveReader() client.Reader { return r.c.Live }

// KindMemory returns what the kind itself keeps of the workload; see Type.Memory.
func (r *Round) KindMemory() any { return r.memory.own }

// NodeTopology returns the places of nodes.
func (r *Round) NodeTopology() *facts.Topology { return r.c.topology }

// RecordNormal records a normal event of the workload.
func (r *Round) RecordNormal(reason, message string) {
	r.c.Events.Event(r.Workload, corev1.EventTypeNormal, reason, message)
}

// RecordWarning records a warning event of the workload.
func (r *Round) RecordWarning(reason, message string) {
	r.c.Events.Event(r.Workload, corev1.EventTypeWarning, reason, message)
}
