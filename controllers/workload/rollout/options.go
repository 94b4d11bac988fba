// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/engine/rank"
)

// Option changes a Controller.
type Option func(*Controller)

// WithGates sets the feature gates.
func WithGates(g Gates) Option { return func(c *Controller) { c.gates = g } }

// WithWorkers sets how many workloads are reconciled at once; 3 if unset.
func WithWorkers(n int) Option { return func(c *Controller) { c.workers = n } }

// WithParallelWrites bounds the API writes that one round has under way; 32 if unset.
func WithParallelWrites(n int) Option { return func(c *Controller) { c.writes = n } }

// WithWindow bounds the API writes of all rounds that share the window, instead of each
// round's.
func WithWindow(w *inflight.Window) Option { return func(c *Controller) { c.window = w } }

// WithStatusEvery sets how much time is between two writes of a status of which only counts
// change; none if unset. The last counts are always written.
func WithStatusEvery(d time.Duration) Option { return func(c *Controller) { c.every = d } }

// WithTurn sets for how long one round goes on beginning writes of one sort before other
// workloads have their turn; 500 ms if unset.
func WithTurn(d time.Duration) Option { return func(c *Controller) { c.turn = d } }

// WithExpectationTimeout sets how long the cache may take to show a write; 5 minutes if
// unset.
func WithExpectationTimeout(d time.Duration) Option { return func(c *Controller) { c.timeout = d } }

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(c *Controller) { c.now = now } }

// WithLeaks sets a function that is called for each workload whose writes the cache does
// not show in time.
func WithLeaks(f func(namespace, name string)) Option { return func(c *Controller) { c.leaks = f } }

// WithRounds sets where the explanations of rounds are kept.
func WithRounds(s *explain.Store) Option { return func(c *Controller) { c.rounds = s } }

// WithRanker sets what remembers the places of pods, for the controllers of several kinds together; one of its own if unset.
func WithRanker(r *rank.Ranker) Option { return func(c *Controller) { c.ranker = r } }

// WithKicks has all workloads reconciled at each event, for policies that change.
func WithKicks(k <-chan event.GenericEvent) Option { return func(c *Controller) { c.kicks = k } }

// WithRateLimiter sets how fast workloads whose round failed are tried again.
func WithRateLimiter(l workqueue.TypedRateLimiter[reconcile.Request]) Option {
	return func(c *Controller) { c.limiter = l }
}

// Ahead does for one workload what is done ahead of scaling and updates in each round, such
// as pulling images. They do not wait for it, unless a policy holds pods for what Round.Pulls
// was given.
type Ahead func(context.Context, *Round, *Facts)

// WithAhead sets a function that makes the Ahead of a workload.
func WithAhead(f func() Ahead) Option { return func(c *Controller) { c.ahead = f } }

// WithAgents sets how to find out whether a node has a node agent, and if it does not, for how
// long one may still come back. All nodes have one if unset.
func WithAgents(f func(ctx context.Context, node string) (there bool, left time.Duration, err error)) Option {
	return func(c *Controller) { c.agents = f }
}

// WithServices has policies know which Services select a pod. The Client lists them.
func WithServices() Option { return func(c *Controller) { c.services = true } }

// WithBudget has budgets asked before each update in place (gate
// PodUnavailableBudgetUpdateGate).
func WithBudget(b Budget) Option { return func(c *Controller) { c.budget = b } }
