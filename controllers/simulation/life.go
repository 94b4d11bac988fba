// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/invariant"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
)

// T is the test in which a Harness is used.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// HarnessConfig is the configuration of a Harness.
type HarnessConfig struct {
	Workload client.Object
	// Nodes are the nodes of the cluster; one node if it is empty.
	Nodes []*corev1.Node
	// Kind makes the adapter, a new one for each controller.
	Kind   func() rollout.Kind
	Engine *engine.Engine
	Gates  rollout.Gates
}

// Harness is a cluster with one workload whose time and events a test controls. Its cache
// lags behind until the test lets it catch up. Deleted objects stay until they have stopped, and
// any write of the controller may fail. Every write is checked against what the kind promises.
// It is for tests of kinds of workloads.
type Harness struct {
	T
	HarnessConfig
	Now    time.Time
	Events *record.FakeRecorder
	// Timer is when the controller is to reconcile again; zero for never.
	Timer time.Time
	// Failures counts rounds in a row that failed.
	Failures int
	// Turn is how long a round begins writes; with zero it does as little as it can.
	// Time passes only between rounds.
	Turn time.Duration
	// Options are further options of the next controller that starts.
	Options []rollout.Option
	// Fault returns the fault of the next write; nil for none.
	Fault func() Fault
	// Deny returns the error with which the API server refuses a write; nil refuses nothing. The writes are: create, patch,
	// patch status of, delete.
	Deny func(o client.Object, what string) error
	// Unreachable makes reads past the cache fail.
	Unreachable bool

	cluster    *cluster
	machines   *fakeNodes
	controller *rollout.Controller
	retrier    *requeue.Retrier
	holds      holdChecker
	// guard has the webhooks of pods and the controller of budgets, and guards their watchers of pods; both are nil without
	// ProtectPods.
	guard  *Simulation
	guards []watcher
	broken string // the first promise, hold or budget that was broken
}

// NewHarness creates a cluster with a workload and a controller that has just started.
func NewHarness(t T, b HarnessConfig) *Harness {
	t.Helper()
	l := &Harness{T: t, HarnessConfig: b, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Turn: 500 * time.Millisecond}
	ctx := context.Background()
	var err error
	if l.cluster, err = emptyCluster(ctx, b.Kind(), func() time.Time { return l.Now }); err != nil {
		t.Fatalf("making a cluster: %v", err)
	}
	l.holds = holdChecker{l: l, begun: map[string]int{}}
	c := l.cluster
	c.slow = true
	if c.nodes = b.Nodes; len(c.nodes) == 0 {
		c.nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}
	}
	c.faults = &faults{next: l.nextFault, deny: l.denyWrite}
	c.unreachable = func() bool { return l.Unreachable }
	c.asked = l.checkWrite
	c.requested = func(o *kruise.ContainerRecreateRequest) { l.recordBreach(l.restartBroken(o)) }
	c.workload = b.Workload.DeepCopyObject().(client.Object)
	l.machines = newFakeNodes(c, ClusterState{}, options{})
	l.machines.gradual = true
	begin := []client.Object{c.workload}
	if c.typ.NodeOf != nil {
		for _, n := range c.nodes {
			begin = append(begin, n.DeepCopy())
		}
	}
	for _, o := range begin {
		l.requireNoError(c.storeObject(ctx, o))
		l.requireNoError(c.commitWrite(ctx, o, false))
	}
	if b.Workload.GetNamespace() != "" {
		l.requireNoError(c.storeObject(ctx, namespaceOf(ClusterState{Workload: b.Workload})))
	}
	l.RestartController()
	return l
}

func (l *Harness) requireNoError(err error) {
	if err != nil {
		l.Helper()
		l.Fatalf("the simulated cluster fails: %v%s", err, l.DescribeState())
	}
}

func (l *Harness) nextFault() Fault {
	if l.Fault == nil {
		return NoFault
	}
	return l.Fault()
}

func (l *Harness) denyWrite(o client.Object, what string) error {
	if l.Deny == nil {
		return nil
	}
	return l.Deny(o, what)
}

// checkWrite checks a write of the controller against what must hold at every instant. It only records a breach, since
// goroutines do the writes, and they may not fail a test.
func (l *Harness) checkWrite(before invariant.Observation, was, now *corev1.Pod) {
	c := l.cluster
	why := c.witness.BrokenPromise(c.workload, before, c.countPods())
	if held := l.holds.writeViolation(before, was, now); why == "" {
		why = held
	}
	if why == "" {
		why = l.findOverdraw(was, now)
	}
	l.recordBreach(why)
}

// recordBreach records what the last write violated, "" for nothing.
func (l *Harness) recordBreach(why string) {
	if c := l.cluster; why != "" && l.broken == "" {
		l.broken = c.faults.history[len(c.faults.history)-1] + " " + why
	}
}

// RestartController starts a new controller: its cache has all objects, and it remembers nothing.
func (l *Harness) RestartController() {
	c := l.cluster
	c.faults.ended, l.Timer, l.Failures = false, time.Time{}, 0
	c.watchers, c.nodesTo = nil, nil
	c.catchUp()
	l.Events = record.NewFakeRecorder(100_000)
	options := append([]rollout.Option{
		rollout.WithGates(l.Gates), rollout.WithWindow(inflight.NewFixed(1)), rollout.WithTurn(l.Turn),
	}, l.Options...)
	l.controller = rollout.New(l.Kind(), reconcile.Deps{Client: c.cachedClient(), Live: c.liveReader(), Events: l.Events, Engine: l.Engine, Now: c.now}, options...)
	l.retrier = requeue.NewRetrier(l.controller, nil, c.now)
	c.watchers = append([]watcher{{l.controller.PodEvents(), &c.queue}}, l.guards...)
	if c.typ.NodeOf != nil {
		c.nodesTo = l.controller.NodeEvents()
		for _, n := range listSorted[*corev1.Node](c.cache) {
			watcher{c.nodesTo, &c.queue}.dispatchEvent(context.Background(), nil, n)
		}
	} else {
		for _, n := range c.nodes { // controllers of all kinds read the places of nodes
			l.controller.NodeEvents().Create(context.Background(), event.CreateEvent{Object: n, IsInInitialList: true}, &c.queue)
		}
	}
	c.queue.dirty = true
}

// Reconcile runs one round, as a worker of the controller does.
func (l *Harness) Reconcile() {
	l.Helper()
	c := l.cluster
	l.countBudgets()
	c.queue.dirty, l.Timer = false, time.Time{}
	c.faults.appendHistory("reconcile")
	req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c.workload)}
	result, err := l.retrier.Reconcile(context.Background(), req)
	c.cache.forEachObject(func(o client.Object) {
		if !reflect.DeepEqual(o, c.shown.getObject(o)) {
			l.Fatalf("%T %s was changed in the cache by its reader", o, o.GetName())
		}
	})
	if l.broken != "" {
		l.Fatalf("%s%s", l.broken, l.DescribeState())
	}
	switch {
	case c.faults.ended:
		c.faults.appendHistory("the controller starts again")
		l.RestartController()
	case err != nil:
		l.Failures++
		c.faults.appendHistory("error: " + err.Error())
		l.Timer = l.Now.Add(l.retrier.When(req))
		return
	case result.RequeueAfter > 0:
		l.Timer = l.Now.Add(result.RequeueAfter)
	}
	l.Failures = 0
	l.retrier.Forget(req)
}

// IsDue reports whether the controller has anything to do now.
func (l *Harness) IsDue() bool {
	return l.cluster.queue.dirty || !l.Timer.IsZero() && !l.Timer.After(l.Now)
}

// ReconcileIfDue runs a round if it is due, and reports whether it did.
func (l *Harness) ReconcileIfDue() bool {
	l.Helper()
	if !l.IsDue() {
		return false
	}
	l.Reconcile()
	return true
}

// RunUntilStable lets everything happen until nothing changes any more, for at most an hour.
func (l *Harness) RunUntilStable() {
	l.Helper()
	end := l.Now.Add(time.Hour)
	for range 2000 {
		did := false
		for _, p := range l.ListPods() {
			did = l.StepPod(p.Name) || did
			did = l.CompleteHooks(p.Name) || did
		}
		did = l.CollectClaims() || did
		did = l.RestartContainers() || did
		l.ShowAll(nil)
		did = l.ReconcileIfDue() || did
		if did {
			continue
		}
		if l.Timer.IsZero() || l.Timer.After(end) {
			return
		}
		l.Now = l.Timer
	}
	l.Fatalf("it never comes to rest: %s", l.recentHistory())
}

// HasEvent reports whether an event begins with a text. It consumes the events up to that one.
func (l *Harness) HasEvent(text string) bool {
	for {
		select {
		case e := <-l.Events.Events:
			if strings.HasPrefix(e, text) {
				return true
			}
		default:
			return false
		}
	}
}

// ActionHistory returns the writes that the controller did or tried, and its rounds.
func (l *Harness) ActionHistory() []string { return l.cluster.faults.history }

// DescribeState describes the whole state for a reader.
func (l *Harness) DescribeState() string {
	out := []string{""}
	l.cluster.objects.forEachObject(func(o client.Object) {
		switch p := o.(type) {
		case *corev1.Pod:
			out = append(out, fmt.Sprintf("pod %s %v deleted %v, annotations %v, image %s, node %q, conditions %v", p.Name, p.Labels, p.DeletionTimestamp != nil, p.Annotations, p.Spec.Containers[0].Image, p.Spec.NodeName, p.Status.Conditions))
		default:
			if reflect.TypeOf(o) == reflect.TypeOf(l.cluster.workload) {
				spec := l.cluster.workloadSpec()
				out = append(out, fmt.Sprintf("%T %s: replicas %d, %+v, minReady %s, lifecycle %+v, status %+v", o, o.GetName(), spec.Replicas, spec.Strategy, spec.MinReady, spec.Lifecycle, l.cluster.typ.Status(o)))
				return
			}
			out = append(out, fmt.Sprintf("%T %s deleted %v", o, o.GetName(), o.GetDeletionTimestamp() != nil))
		}
	})
	return strings.Join(append(out, l.recentHistory()), "\n")
}

func (l *Harness) recentHistory() string {
	h := l.ActionHistory()
	if len(h) > 200 {
		h = h[len(h)-200:]
	}
	return "  " + strings.Join(h, "\n  ")
}
