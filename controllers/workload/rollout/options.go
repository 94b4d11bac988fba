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

// WithParallelWrites bounds the API writes that one round has under way; 32 if unset.
func WithParallelWrites(n int) Option { return func(c *Controller) { c.writes = n } }

// WithWindow bounds the API writes of all rounds that share the window, instead of each
// round's.
func WithWindow(w *inflight.Window) Option { return func(c *Controller) { c.window = w } }

// WithTurn sets for how long one round goes on beginning writes of one sort before other
// workloads have their turn; 500 ms if unset.
func WithTurn(d time.Duration) Option { return func(c *Controller) { c.turn = d } }

// WithExpectationTimeout sets how long the cache may take to show a write; 5 minutes if
// unset.
func WithExpectationTimeout(d time.Duration) Option { return func(c *Controller) { c.timeout = d } }

// WithLeaks sets a function that is called for each workload whose writes the cache does
// not show in time.
func WithLeaks(f func(namespace, name string)) Option { return func(c *Controller) { c.leaks = f } }

// WithRanker sets what remembers the places of pods, for the controllers of several kinds together; one of its own if unset.
func WithRanker(r *rank.Ranker) Option { return func(c *Controller) { c.ranker = r } }

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
