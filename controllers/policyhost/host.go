// SPDX-License-Identifier: Apache-2.0

// Package policyhost runs policies in a process. A Host follows the policy bundles
// of the cluster, verifies and loads them, stores them on disk for a start without the API server,
// compares bundles in shadow, and records and measures every decision.
//
// Each process that makes decisions embeds a Host. The manager also publishes
// bundles, which is what package policybundle does; a Host only follows published bundles, writes
// nothing to the cluster, and needs no leader.
package policyhost

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/cgroup"
	enginemetrics "github.com/regatta-sh/regatta/engine/metrics"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/shadow"
)

// Key names a bundle. The namespace is empty for bundles of the platform.
type Key = types.NamespacedName

// Host runs the policies of one process.
type Host struct {
	name   string
	config *rest.Config
	scheme *runtime.Scheme
	live   client.Client // reads past any cache
	store  bundlerevision.Store

	engine  *engine.Engine
	shadows *shadow.Runner
	library *library
	disk    *disk // nil to store nothing
	copies  copies
	origins origins

	records *record.Buffer
	encoder *record.Encoder
	logs    sinks

	rolledBack chan Key
	ready      chan struct{}
	setReady   func()
}

// New makes a Host that decides by the built-in policies until LoadBundles, Start or RestoreFromDisk.
// namespace is where bundles of the platform are stored; name identifies this process in statuses and
// logs. The API server need not answer.
func New(config *rest.Config, namespace, name string, opts ...Option) (*Host, error) {
	o := defaultOptions()
	for _, opt := range opts {
		opt(&o)
	}
	h := &Host{
		name: name, config: config, scheme: runtime.NewScheme(), disk: o.disk,
		records: record.NewBuffer(), rolledBack: make(chan Key, mostRolledBack), ready: make(chan struct{}),
	}
	h.setReady = sync.OnceFunc(func() { close(h.ready) })
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, policy.AddToScheme} {
		if err := add(h.scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	var err error
	if h.live = o.client; h.live == nil {
		if h.live, err = client.New(config, client.Options{Scheme: h.scheme}); err != nil {
			return nil, fmt.Errorf("making a client for policy bundles: %w", err)
		}
	}
	h.store = bundlerevision.Store{Client: h.live, Reader: h.live, Namespace: namespace}
	var logged *record.Encoder
	if h.encoder, logged, err = o.logs.newEncoders(name); err != nil {
		return nil, err
	}
	if h.logs, err = o.logs.openSinks(logged, os.Stdout); err != nil {
		return nil, err
	}
	if err := h.startEngine(o); err != nil {
		return nil, errors.Join(err, h.logs.closeAll())
	}
	return h, nil
}

// startEngine makes the engine, with every sink and observer of decisions.
func (h *Host) startEngine(o options) error {
	counted := enginemetrics.New()
	if o.metrics != nil {
		if err := o.metrics.Register(counted); err != nil {
			return fmt.Errorf("registering the metrics of decisions: %w", err)
		}
		if err := o.metrics.Register(enginemetrics.NewLogs(h.logs...)); err != nil {
			return fmt.Errorf("registering the metrics of decision logs: %w", err)
		}
	}
	tenants, views := policyMemory(cgroup.SystemFiles())
	opts := append(counted.EngineOptions(),
		engine.WithSink(h.records),
		engine.WithObserver(observer{h, o.activated}),
		engine.WithMemory(decisionMemory(cgroup.SystemFiles(), o.reserved)),
		engine.WithTenantBytes(tenants), engine.WithViewBytes(views), engine.WithInvalid(h.reportInvalid), engine.WithCompiledLate(h.reportCompiledLate), engine.WithSpared(isBundle),
		engine.WithSinkOf(func(e *engine.Engine) engine.Sink {
			h.shadows = shadow.New(e, append([]shadow.Option{shadow.WithObserver(counted), shadow.WithSampled(h.logShadowSample)}, o.shadows...)...)
			return h.shadows
		}))
	var err error
	if h.engine, err = engine.New(o.builtin, append(append(opts, h.logs.engineOptions()...), o.engine...)...); err != nil {
		return err
	}
	if o.metrics != nil {
		if err := o.metrics.Register(newMissingCollector(h.engine)); err != nil {
			return fmt.Errorf("registering the metrics of policy bundles: %w", err)
		}
	}
	h.library = newLibrary(h.engine, h.shadows)
	h.library.before = o.before
	if h.disk != nil {
		h.library.marks = newMarks(h.disk.Dir, h.tellWaiting)
	}
	return nil
}

// logShadowSample logs a decision of a shadow that differs from the one that took effect.
func (h *Host) logShadowSample(s shadow.Sampled) {
	r := s.Now
	r.Shadow = s.Name
	for _, log := range h.logs {
		log.RecordDecision(r)
	}
}

// Close stops the Host, and waits a moment for decisions that are not logged yet.
func (h *Host) Close() {
	h.library.marks.clearOwnEntries()
	h.shadows.Close()
	h.engine.Close()
	if err := h.logs.closeAll(); err != nil {
		klog.ErrorS(err, "The last decisions are not logged")
	}
}

// Name returns the name of this process.
func (h *Host) Name() string { return h.name }

// Engine returns the engine that decides.
func (h *Host) Engine() *engine.Engine { return h.engine }

// DecisionRecords returns the latest decisions.
func (h *Host) DecisionRecords() *record.Buffer { return h.records }

// RecordEncoder returns the encoder of decisions for users who ask for them. It masks, even if the
// decision logs do not.
func (h *Host) RecordEncoder() *record.Encoder { return h.encoder }

// Ready returns a channel that is closed when the policy bundles decide: those of the API server, or
// those on disk while it does not answer.
func (h *Host) Ready() <-chan struct{} { return h.ready }

// CheckReady is a healthz.Checker that fails until the Host is ready.
func (h *Host) CheckReady(*http.Request) error {
	select {
	case <-h.ready:
		return nil
	default:
		return errors.New("the policy bundles are not loaded yet")
	}
}

// tellWaiting makes the bundles that wait for their turn be reconciled.
func (h *Host) tellWaiting() { h.reportChanged(h.library.missingKeys()) }

// RolledBack returns the channel of the bundles that must be followed again: the engine rolled them
// back, a bundle of the platform displaced them, they do not compile with those of the platform any
// more, or their turn may have come.
func (h *Host) RolledBack() <-chan Key { return h.rolledBack }

// EnforcedBundle returns the enforced revision of a bundle, or nil.
func (h *Host) EnforcedBundle(key Key) *bundle.Bundle { return h.library.BundleStages(key).Enforced }

// PeerBundles returns the bundles that a bundle would decide with: all bundles of the platform, and
// those of its own namespace.
func (h *Host) PeerBundles(key Key) bundle.Set { return h.library.PeerBundles(key) }

// WithheldBeside returns those of the peers of a bundle that were rolled back and that nothing
// replaces. They still hold their packages.
func (h *Host) WithheldBeside(key Key) bundle.Set { return h.library.WithheldBeside(key) }
