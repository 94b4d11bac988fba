// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"context"
	"io/fs"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/shadow"
	"github.com/regatta-sh/regatta/policies"
)

// Option changes how a Host works.
type Option func(*options)

type options struct {
	builtin   fs.FS
	disk      *disk
	logs      *DecisionLogs
	metrics   prometheus.Registerer
	reserved  uint64
	activated func(revision string)
	before    func(ctx context.Context, next *engine.Snapshot) error
	engine    []engine.Option
	shadows   []shadow.Option
	client    client.Client // nil to make one from the config
}

func defaultOptions() options {
	return options{builtin: policies.Builtin, logs: &DecisionLogs{}, activated: func(string) {}}
}

// WithDirectory stores the active bundles in a directory. They are loaded from there while the API
// server does not answer.
func WithDirectory(dir string) Option { return func(o *options) { o.disk = &disk{Dir: dir} } }

// WithDecisionLogs writes each decision where the flags say.
func WithDecisionLogs(logs *DecisionLogs) Option { return func(o *options) { o.logs = logs } }

// WithMetrics registers the metrics of decisions, shadows and decision logs.
func WithMetrics(to prometheus.Registerer) Option { return func(o *options) { o.metrics = to } }

// WithReservedMemory sets how many bytes of the container's memory decisions may not use.
func WithReservedMemory(bytes uint64) Option { return func(o *options) { o.reserved = bytes } }

// WithActivated makes the Host call f when another revision of the policies becomes active. f must not
// block.
func WithActivated(f func(revision string)) Option { return func(o *options) { o.activated = f } }

// WithBefore makes the Host call f before bundles of the cluster become active. If f fails, the active bundles stay, and the
// activation is retried. f is not called for bundles of the disk, which were active before, nor when bundles are removed.
func WithBefore(f func(ctx context.Context, next *engine.Snapshot) error) Option {
	return func(o *options) { o.before = f }
}

// WithBuiltin replaces the built-in policies.
func WithBuiltin(files fs.FS) Option { return func(o *options) { o.builtin = files } }

// WithClient sets the client that reads bundles, in place of one made from the config. It must not read from a
// cache.
func WithClient(c client.Client) Option { return func(o *options) { o.client = c } }

// WithEngine adds options of the engine.
func WithEngine(opts ...engine.Option) Option {
	return func(o *options) { o.engine = append(o.engine, opts...) }
}

// WithShadows adds options of the comparison of bundles in shadow.
func WithShadows(opts ...shadow.Option) Option {
	return func(o *options) { o.shadows = append(o.shadows, opts...) }
}
