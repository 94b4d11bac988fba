// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/overlay"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/engine/rank"
)

// Controller reconciles workloads of one kind.
type Controller struct {
	reconcile.Deps

	kind     Kind
	typ      Type
	ranker   *rank.Ranker
	seed     maphash.Seed // of hashes of facts
	gates    Gates
	writes   int
	turn     time.Duration
	window   *inflight.Window
	timeout  time.Duration
	topology *facts.Topology
	missed   *reconcile.MissedEvents
	overlay  *overlay.Overlay
	updater  inplace.Updater
	states   lifecycle.Writer
	leaks    func(namespace, name string)
	budget   Budget
	services bool
	agents   func(ctx context.Context, node string) (bool, time.Duration, error)
	ahead    func() Ahead

	mu       sync.Mutex
	memories map[types.NamespacedName]*Memory
}

// New makes a Controller of a kind.
func New(kind Kind, deps reconcile.Deps, opts ...Option) *Controller {
	c := &Controller{
		Deps: deps.WithDefaults(), kind: kind, typ: kind.WorkloadType(), seed: maphash.MakeSeed(),
		writes: 32, turn: defaultTurn, timeout: 5 * time.Minute, topology: facts.NewTopology(),
		leaks: func(string, string) {}, memories: map[types.NamespacedName]*Memory{},
	}
	if c.typ.Events.Created == nil {
		c.typ.Events = cloneSetTexts()
	}
	if c.typ.NodeOf != nil {
		c.topology = facts.NewTopologyWithLabels()
	}
	for _, o := range opts {
		o(c)
	}
	if c.ranker == nil {
		c.ranker = rank.New(c.Engine)
	}
	c.missed = reconcile.NewMissedEvents(c.controllerName(), c.allRequests)
	c.overlay = overlay.New(c.Now)
	c.updater = inplace.Updater{Client: c.Client, Live: c.Live, Now: c.Now, Refused: &inplace.Refusals{}}
	c.states = lifecycle.Writer{Client: c.Client, Now: c.Now}
	return c
}

// Reconcile runs one round: it refreshes pods, scales, moves pods unless the scaling did more
// than create pods (CS-04), and then reports the status.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	workload := c.typ.New()
	err := c.ReadObject(ctx, req.NamespacedName, workload)
	if apierrors.IsNotFound(err) || (err == nil && workload.GetDeletionTimestamp() != nil) {
		c.forgetWorkload(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the %s: %w", c.typ.Kind, err)
	}
	m := c.memoryOf(workload)
	r, f, err := c.beginRound(ctx, workload, m)
	if IsConflict(err) {
		if again, ok := requeue.LoseRace(ctx, err); ok {
			return reconcile.Result{RequeueAfter: again}, nil
		}
	}
	if err != nil {
		err = fmt.Errorf("gathering: %w", err)
		return reconcile.Result{}, message.JoinErrors(err, r.reportUnreadable(ctx, err))
	}
	if m.unreadable = ""; f == nil { // the cache lags behind the controller's own writes
		return reconcile.Result{RequeueAfter: r.again.after}, nil
	}
	f, res := r.executeRound(ctx, f)
	res.Stuck, res.ScaleHolds = r.findStuck(f, res), r.scaleHolds
	r.reportScaleHold(f, res)
	r.reportRestartHold(f, &res)
	if IsConflict(res.Err) {
		if _, ok := requeue.LoseRace(ctx, res.Err); !ok {
			res.Err = r.giveUpRacing(res.Err)
		}
	}
	reported := c.kind.ReportStatus(ctx, r, f, res)
	err = cmp.Or(res.Err, reported)
	truncated := c.kind.TruncateHistory(ctx, r, f, err != nil)
	err = cmp.Or(err, truncated)
	c.Rounds.PutRound(f.Subject, newRound(c.Engine, f, res, r.journal))
	if IsConflict(err) {
		if again, ok := requeue.LoseRace(ctx, err); ok {
			return reconcile.Result{RequeueAfter: again}, nil
		}
	}
	return reconcile.Result{RequeueAfter: r.again.after}, err
}

// executeRound carries out the round. If a pod cannot continue what it has begun, neither
// the other pods nor the rest of the round stop: the pod stays as it was.
func (r *Round) executeRound(ctx context.Context, f *Facts) (*Facts, Result) {
	r.writing = r.c.Now()
	f, opening, err := r.refreshPods(ctx, f)
	f, res := r.scaleAndMove(ctx, f)
	opened, failed := opening.waitOpened()
	if err = errors.Join(err, failed); err != nil {
		res.Err = errors.Join(newPhaseError(PhaseUpdate, fmt.Errorf("refreshing pods: %w", err)), res.Err)
	}
	return r.updateFacts(f, opened), res
}

// scaleAndMove scales and moves pods.
func (r *Round) scaleAndMove(ctx context.Context, f *Facts) (*Facts, Result) {
	if r.memory.ahead != nil {
		r.memory.ahead(ctx, r, f)
	}
	var err error
	acted, failed := r.c.kind.ScalePods(ctx, r, f)
	if failed != nil {
		// Other pods are moved although some pods cannot be created: each missing pod counts as
		// unavailable, so only as many are moved as maxUnavailable leaves room for.
		acted = acted || !onlyCreates(failed)
		err = newPhaseError(PhaseScale, failed)
	}
	f = r.updateFacts(f, r.created.pods)
	if acted {
		return f, Result{Err: err}
	}
	if r.isRestartDue(f) {
		d, o, failed := r.runRestart(ctx, f)
		return f, Result{Decisions: d, Outcome: o, Err: errors.Join(err, newPhaseError(PhaseUpdate, failed))}
	}
	d, undecided := r.decideMoves(ctx, f)
	d, o, failed := r.moveTaken(ctx, f, d)
	failed = errors.Join(undecided, failed, r.takeBack(ctx, f, d))
	return f, Result{Decisions: r.orBeside(d), Outcome: r.addSpared(o), Err: errors.Join(err, newPhaseError(PhaseUpdate, failed))}
}
