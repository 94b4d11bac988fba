// SPDX-License-Identifier: Apache-2.0

// Package simulation runs a rollout of a workload without a cluster and
// without waiting. The controller, its engine and its policies are real;
// the API server, the kubelets and the clock are simulated. A Simulation runs a whole rollout.
// A test controls a Harness step by step, with everything that can go wrong in a cluster.
package simulation

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/invariant"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

const (
	revisionLabel = appsv1.ControllerRevisionHashLabelKey
	// slack is how much longer evaluations may take than in a manager: a slow
	// machine must not change the output.
	slack = 20
	// mostIdle is how many rounds in a row may change nothing.
	mostIdle = 200
)

// Simulation is one rollout.
type Simulation struct {
	options
	now        time.Time
	engine     *engine.Engine
	cluster    *cluster
	machines   *fakeNodes
	judge      *invariantChecker
	rounds     *explain.Store
	reconciler *rollout.Controller
	retrier    *requeue.Retrier
	timer      time.Time // when the controller is to reconcile again, zero for never
	counters   *counters
	others     []client.Object
	namespace  labels.Set
	refusals   []Refusal // of this round
	denials    int       // rounds with refusals in a row
	happened   time.Time // when anything last happened
	idle       int       // rounds since
	wave       int       // the last wave
}

// New makes a simulation that begins at a time. The policies are the built-in ones
// and a set of bundles.
func New(builtin fs.FS, set bundle.Set, f ClusterState, at time.Time, opts ...Option) (*Simulation, error) {
	s := &Simulation{
		options: options{readyAfter: 30 * time.Second, patience: 366 * 24 * time.Hour},
		now:     at.UTC(), happened: at.UTC(), rounds: explain.NewStore(explain.WithMaxBytes(math.MaxInt)), others: f.Others, namespace: labelsOf(f),
	}
	for _, o := range opts {
		o(&s.options)
	}
	s.judge = &invariantChecker{s: s, single: map[string]decision.Hold{}, exempt: map[string]bool{}}
	ctx := context.Background()
	clock := func() time.Time { return s.now }
	var err error
	if s.gates.MutableVersionedFeatureGate == nil {
		if s.gates, err = features.New(); err != nil {
			return nil, err
		}
	}
	if err := s.gates.ResolveDependencies(""); err != nil {
		return nil, err
	}
	kind, err := f.Kind(s.gates.Enabled)
	if err != nil {
		return nil, err
	}
	if s.cluster, err = newCluster(ctx, f, kind, clock); err != nil {
		return nil, err
	}
	s.machines = newFakeNodes(s.cluster, f, s.options)
	// Time stands still while policies are evaluated, so limits by a share of time have no meaning.
	if s.engine, err = engine.New(builtin, engine.WithClock(clock), engine.WithSink(s.judge), engine.WithPatience(slack), engine.WithShare(1e6), engine.WithCompiled(s.compiled...)); err != nil {
		return nil, err
	}
	if err := s.engine.ActivateBundles(ctx, set); err != nil {
		s.engine.Close()
		return nil, err
	}
	budget, err := s.setupProtection(ctx, f, clock)
	if err != nil {
		s.engine.Close()
		return nil, err
	}
	c := s.cluster.cachedClient()
	s.reconciler = rollout.New(kind, reconcile.Deps{Client: c, Live: c, Events: &record.FakeRecorder{}, Engine: s.engine, Rounds: s.rounds, Now: clock},
		rollout.WithWindow(inflight.NewFixed(1)), rollout.WithGates(rollout.GatesOf(s.gates.Enabled)), rollout.WithBudget(budget))
	s.retrier = requeue.NewRetrier(s.reconciler, nil, clock)
	s.cluster.watchers = append(s.cluster.watchers, watcher{s.reconciler.PodEvents(), &s.cluster.queue})
	s.cluster.asked = func(before invariant.Observation, was, now *corev1.Pod) {
		if now == nil {
			s.machines.forgetPod(was)
		}
		s.judge.checkWrite(before, was, now)
		s.reportProgress()
	}
	for _, n := range slices.Concat(f.Nodes, assumeNodes(f, s.now)) {
		s.reconciler.NodeEvents().Create(ctx, event.CreateEvent{Object: n, IsInInitialList: true}, &s.cluster.queue)
	}
	return s, nil
}

// assumeNodes returns the nodes that a state does not have and that its pods are on or are to be on. Each counts as ready, and as created
// when the simulation begins.
func assumeNodes(f ClusterState, begin time.Time) (out []*corev1.Node) {
	known := map[string]bool{"": true}
	for _, n := range f.Nodes {
		known[n.Name] = true
	}
	for _, name := range append([]string{unnamedNode}, f.AbsentNodes()...) {
		if known[name] {
			continue
		}
		known[name] = true
		out = append(out, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(begin)},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	return out
}

// CompiledPolicies returns the policies of the simulation, for WithCompiled.
func (s *Simulation) CompiledPolicies() []engine.CompiledPolicies {
	return []engine.CompiledPolicies{s.engine.BaseSnapshot().CompiledPolicies(), s.engine.ActiveSnapshot().CompiledPolicies()}
}

// Close stops the engine of the simulation.
func (s *Simulation) Close() { s.engine.Close() }

// Run simulates until all pods are up to date, nothing happens any more, or a limit in the
// options is reached.
func (s *Simulation) Run(ctx context.Context) (Report, error) {
	rand.Seed(s.seed)
	snapshot := s.engine.ActiveSnapshot()
	r := Report{Began: s.now, Replicas: s.workloadReplicas(), Policies: snapshot.Revision(), Bundles: snapshot.UserBundles().IDs(), Steps: []Step{}, Violations: []Violation{}}
	s.cluster.queue.dirty = true
	for {
		if err := ctx.Err(); err != nil {
			return r, fmt.Errorf("simulating: %w", err)
		}
		did, next, err := s.machines.syncPods(ctx)
		if err != nil {
			return r, err
		}
		if did {
			s.happened, s.idle = s.now, 0
		}
		counted, due, err := s.counters.reconcileDue(ctx)
		if err != nil {
			return r, err
		}
		if soon := s.now.Add(askAgain); counted && s.denials > 0 {
			s.denials = 0
			if s.timer.IsZero() || s.timer.After(soon) {
				s.timer = soon
			}
		}
		if s.cluster.queue.dirty || (!s.timer.IsZero() && !s.timer.After(s.now)) {
			step := s.runRound(ctx, &r)
			r.Steps = append(r.Steps, step)
			s.reportProgress()
			if s.waves > 0 && r.Waves >= s.waves {
				return s.finishReport(r, Stopped), nil
			}
			if s.idle > mostIdle {
				return s.finishReport(r, Stuck), nil
			}
			continue
		}
		if did {
			continue
		}
		if how := s.advanceClock(r, next, due); how != "" {
			return s.finishReport(r, how), nil
		}
	}
}

// advanceClock moves the clock to when something happens to pods, or when a budget is due.
// If there is no such time, it returns how the simulation ends.
func (s *Simulation) advanceClock(r Report, next, due time.Time) string {
	resting := len(r.Steps) > 0 && r.Steps[len(r.Steps)-1].Verdict == explain.UpToDate
	if resting && next.IsZero() {
		return Done
	}
	for _, other := range []time.Time{s.timer, due} {
		if next.IsZero() || (!other.IsZero() && other.Before(next)) {
			next = other
		}
	}
	if next.IsZero() || next.Sub(s.happened) > s.patience {
		return Stuck
	}
	if s.step > 0 {
		steps := (next.Sub(r.Began) + s.step - 1) / s.step
		next = r.Began.Add(steps * s.step)
	}
	if !s.until.IsZero() && next.After(s.until) {
		s.now = s.until
		return Stopped
	}
	s.now = next
	return ""
}

// runRound runs one round of the controller.
func (s *Simulation) runRound(ctx context.Context, r *Report) Step {
	workload := s.cluster.workload
	before := make(map[string]UpdatedPod, len(s.cluster.podsByName()))
	for _, p := range s.cluster.sortedPods() {
		name := p.Name
		before[name] = UpdatedPod{Name: name, Zone: s.nodeLabels(p.Spec.NodeName)[corev1.LabelTopologyZone], Labels: p.Labels}
	}
	was := s.cluster.countPods()
	s.cluster.queue.dirty, s.timer = false, time.Time{}
	s.judge.beginRound()
	s.refusals = nil
	req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(workload)}
	result, err := s.retrier.Reconcile(ctx, req)
	step := Step{At: s.now, Refused: s.refusals}
	switch {
	case err != nil && onlyRefused(err): // tried again below
	case err != nil:
		step.Error = err.Error()
		s.timer = s.now.Add(s.retrier.When(req))
	case result.RequeueAfter > 0:
		s.timer = s.now.Add(result.RequeueAfter)
		fallthrough
	default:
		s.retrier.Forget(req)
	}
	for name := range s.cluster.podsByName() {
		if _, was := before[name]; !was {
			step.Created++
		}
	}
	sight := s.cluster.countPods()
	step.Available, step.Pods, step.Updated = sight.Available, sight.Active, sight.Updated
	a, _ := s.rounds.ExplainWorkload(s.cluster.typ.GroupKind(), workload.GetNamespace(), workload.GetName())
	if r.To == "" {
		r.Workload, r.From, r.To = a.Subject, a.From, a.To
	}
	step.Verdict, step.Reason, step.Message, step.Rule, step.Until, step.Why = a.Verdict, a.Reason, a.Message, a.Rule, a.Until, a.Why
	if a.Error != "" {
		step.Undecided = fmt.Sprintf("%s: %s", a.Outcome, a.Error)
	}
	pods, _ := s.rounds.PodsOf(s.cluster.typ.GroupKind(), workload.GetNamespace(), workload.GetName())
	for _, p := range pods {
		if p.Verdict == explain.Moved {
			moved := before[p.Subject.Name]
			moved.InPlace = isKept(s.cluster.findPod(p.Subject.Name))
			step.Moved = append(step.Moved, moved)
		}
	}
	if len(step.Moved) > 0 {
		r.Waves++
		step.Wave, s.wave = r.Waves, r.Waves
	}
	if s.idle++; len(step.Moved) > 0 || sight != was {
		s.happened, s.idle, s.denials = s.now, 0, 0
	}
	if len(step.Refused) == 0 {
		s.denials = 0
	} else if err != nil || result.RequeueAfter == 0 || result.RequeueAfter >= askAgain {
		s.timer = s.retryTime(step.Refused)
	}
	return step
}

// isKept reports whether a pod is to stay: it exists, and its deletion is neither requested nor prepared.
func isKept(pod *corev1.Pod) bool {
	if pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	_, condemned := pod.Labels[kruise.SpecifiedDeleteKey]
	return !condemned && lifecycle.PodState(pod) != kruise.LifecycleStatePreparingDelete
}

func (s *Simulation) finishReport(r Report, how string) Report {
	r.End = Outcome{At: s.now, How: how}
	if how == Stuck {
		r.End.Since = &s.happened
	}
	r.Violations = append(r.Violations, s.judge.found...)
	return r
}

// reportProgress calls the callback of WithProgress.
func (s *Simulation) reportProgress() {
	if s.progress != nil {
		sight := s.cluster.countPods()
		s.progress(Progress{At: s.now, Wave: s.wave, Pods: sight.Active, Updated: sight.Updated, Replicas: s.workloadReplicas()})
	}
}

func (s *Simulation) workloadReplicas() int {
	return s.cluster.workloadSpec().Replicas
}

func (s *Simulation) nodeLabels(name string) map[string]string {
	for _, n := range s.cluster.nodes {
		if n.Name == name {
			return n.Labels
		}
	}
	return nil
}
