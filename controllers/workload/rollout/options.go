// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"time"

	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/engine/rank"
)

// Option changes a Controller.
type Option func(*Controller)

// WithGates sets the feature gates.
func WithGates(g Gates) Option { return func(c *Controller) { c.gates = g } }

// WithParallelWrites bounds how many API writes of one round are under way at the same time; 32 if unset.
func WithParallelWrites(n int) Option { return func(c *Controller) { c.writes = n } }

// WithWindow bounds the API writes of all rounds that share the window, instead of each
// round's.
func WithWindow(w *inflight.Window) Option { return func(c *Controller) { c.window = w } }

// WithTurn sets how long one round may begin writes of one sort before other
// workloads have their turn; 500 ms if unset.
func WithTurn(d time.Duration) Option { return func(c *Controller) { c.turn = d } }

// WithExpectationTimeout sets how long the cache may take to show a write; 5 minutes if
// unset.
func WithExpectationTimeout(d time.Duration) Option { return func(c *Controller) { c.timeout = d } }

// WithLeaks sets a function that is called for each workload whose writes the cache does
// not show in time.
func WithLeaks(f func(namespace, name string)) Option { return func(c *Controller) { c.leaks = f } }

// WithRanker sets the Ranker that remembers the order of pods. Controllers of several kinds may share one. If unset, each controller
// has its own.
func WithRanker(r *rank.Ranker) Option { return func(c *Controller) { c.ranker = r } }

// Ahead is called in each round of one workload before scaling and updates, for example
// to pull images. Scaling and updates do not wait for its results, unless a policy holds pods because of the images passed
// to Round.SetPulls.
type Ahead func(context.Context, *Round, *Facts)

// WithAhead sets a function that makes the Ahead of a workload.
func WithAhead(f func() Ahead) Option { return func(c *Controller) { c.ahead = f } }

// WithAgents sets a function that reports whether a node has a node agent, and if not, for how
// long one may still come back. If unset, all nodes count as having one.
func WithAgents(f func(ctx context.Context, node string) (there bool, left time.Duration, err error)) Option {
	return func(c *Controller) { c.agents = f }
}

// WithServices adds to the facts whether a Service selects a pod. The Client lists Services.
func WithServices() Option { return func(c *Controller) { c.services = true } }

// WithBudget makes each update in place check budgets first (gate
// PodUnavailableBudgetUpdateGate).
func WithBudget(b Budget) Option { return func(c *Controller) { c.budget = b } }
