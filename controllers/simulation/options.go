// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/engine"
)

// Option changes a Simulation.
type Option func(*options)

type options struct {
	step       time.Duration
	readyAfter time.Duration
	broken     []string
	fails      int
	seed       int64
	compiled   []engine.CompiledPolicies
	until      time.Time
	waves      int
	patience   time.Duration
	gates      features.Gates
	progress   func(Progress)
}

// WithStep makes time pass in steps of d: what is due within a step happens at its
// end. Without it everything happens when it is due.
func WithStep(d time.Duration) Option { return func(o *options) { o.step = d } }

// WithReadyAfter sets how long pods take to become ready; 30 s if unset.
func WithReadyAfter(d time.Duration) Option { return func(o *options) { o.readyAfter = d } }

// WithBroken names pods that do not become ready once they are moved. Their replacements
// do not become ready either.
func WithBroken(names ...string) Option { return func(o *options) { o.broken = names } }

// WithFailures makes the first n pods that start never become ready.
func WithFailures(n int) Option { return func(o *options) { o.fails = n } }

// WithSeed sets the seed for the names of pods. It is the seed of the
// process, so only one simulation may run at a time.
func WithSeed(n int64) Option { return func(o *options) { o.seed = n } }

// WithUntil ends the simulation at a time.
func WithUntil(t time.Time) Option { return func(o *options) { o.until = t } }

// WithWaves ends the simulation after so many waves.
func WithWaves(n int) Option { return func(o *options) { o.waves = n } }

// WithPatience sets how long nothing may happen before the simulation counts as stuck; a year
// if unset.
func WithPatience(d time.Duration) Option { return func(o *options) { o.patience = d } }

// WithProgress sets a callback for each write to a pod and each round.
func WithProgress(tell func(Progress)) Option { return func(o *options) { o.progress = tell } }

// WithCompiled takes policies from other simulations where they are the same, in place of compiling them again.
func WithCompiled(from ...engine.CompiledPolicies) Option {
	return func(o *options) { o.compiled = from }
}

// WithGates sets the feature gates of the manager; their defaults if unset.
func WithGates(g features.Gates) Option { return func(o *options) { o.gates = g } }
