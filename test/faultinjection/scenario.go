// SPDX-License-Identifier: Apache-2.0

// Package faultinjection tests that a controller reaches its end state whatever call to the API
// server fails. It runs a reconcile.Reconciler over an API server in memory as the queue of a controller
// does: at an event, at a timer, and after a back-off. First it runs without faults. Then it runs
// once for each call and fault, and compares the end states.
package faultinjection

import (
	"context"
	"regexp"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Environment is what a controller under test is made with.
type Environment struct {
	// Client reads and writes. Its calls can fail.
	Client client.WithWatch
	Clock  func() time.Time
	Events record.EventRecorder
	// Notify has each request made once more after the current round, as an event of the controller's own source does.
	Notify func()
}

// Cluster is what others do something with. No call of its client fails by an injected fault.
type Cluster struct {
	Client client.WithWatch
	Now    time.Time
	t      testing.TB
}

// Must ends the test if there is an error.
func (c *Cluster) Must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// PatchStatus writes the status of an object if it is another one than before.
func (c *Cluster) PatchStatus(o, before client.Object) {
	c.t.Helper()
	if !equality.Semantic.DeepEqual(o, before) {
		c.Must(c.Client.Status().Patch(c.Context(), o, client.MergeFrom(before)))
	}
}

// Context is that of the test.
func (c *Cluster) Context() context.Context { return c.t.Context() }

// Changes are the changes of objects of a kind that a controller has an event for.
type Changes int

// The changes of objects of a kind.
const (
	AllChanges Changes = iota
	// ChangesOfSpec leaves out those of status.
	ChangesOfSpec
	// NoChanges is of kinds without a watch.
	NoChanges
)

// Scenario is a controller and the cluster that it runs in.
type Scenario struct {
	// Objects exist when the scenario begins.
	Objects []client.Object
	// Build adds indexes to the API server in memory.
	Build func(*fake.ClientBuilder)
	// Applies is for controllers that apply objects.
	Applies bool
	// OnlyReads is for controllers that write nothing. Others write down what such a one has come to.
	OnlyReads bool
	// Groups are the API groups of the cluster besides those of pods, workloads, jobs, budgets and Regatta's own.
	Groups []func(*runtime.Scheme) error
	// New makes the controller, which has nothing in memory.
	New func(testing.TB, Environment) reconcile.Reconciler
	// Requests are what each event asks for.
	Requests []reconcile.Request
	// Others do what kubelets, node agents, other controllers and users do. It is called after each
	// round, and has to come to an end.
	Others func(*Cluster)
	// Watches are the changes by kind, such as "Pod"; AllChanges if it is not listed.
	Watches map[string]Changes
	// NoLateReads are kinds of which a cache that is late does not lead to the same end, such as one of
	// an object that another one replaces.
	NoLateReads []string
	// Random are names in the end state that are drawn.
	Random *regexp.Regexp
	// Quiet is how long nothing may happen until the run is at its end; 15 min if unset.
	Quiet time.Duration
	// Delay is how much later than without a fault the end may come; 90 s if unset.
	Delay time.Duration
	// Rounds are the most rounds of one run; 300 if unset.
	Rounds int
	// Skip leaves a fault out, where another end is right. Say why beside it.
	Skip func(Call, Fault) bool
}

func (s Scenario) withDefaults() Scenario {
	if s.Quiet == 0 {
		s.Quiet = 15 * time.Minute
	}
	if s.Delay == 0 {
		s.Delay = 90 * time.Second
	}
	if s.Rounds == 0 {
		s.Rounds = 300
	}
	if s.Others == nil {
		s.Others = func(*Cluster) {}
	}
	return s
}

// RequestFor is the request for an object.
func RequestFor(o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}
