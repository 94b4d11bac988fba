// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/regatta-sh/regatta/controllers/api"
	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/rolloutmetrics"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
	webhookserver "github.com/regatta-sh/regatta/controllers/webhook/server"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/cgroup"
	"github.com/regatta-sh/regatta/engine/rank"
)

// NewScheme makes a scheme with every kind that the manager reads or writes.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return s, nil
}

// Run runs the manager until ctx is done.
func Run(ctx context.Context, o *Options, restConfig *rest.Config) error {
	ctrl.SetLogger(klog.Background())
	log := klog.FromContext(ctx)
	if bytes := policyhost.LimitHeap(cgroup.SystemFiles()); bytes > 0 {
		log.Info("The garbage collector keeps below the memory limit of the container", "bytes", bytes)
	}
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS, restConfig.Burst = o.QPS, o.Burst
	restConfig.UserAgent = "kruise-manager"
	writes := inflight.New(time.Now)
	restConfig.Wrap(writes.WrapTransport)
	events := newPolicyEvents()
	host, err := o.policyHost(restConfig, events)
	if err != nil {
		return err
	}
	defer host.Close()
	if err := (&offline{Options: o, config: restConfig, host: host}).serveOffline(ctx, scheme); err != nil || ctx.Err() != nil {
		return err
	}
	clients, err := o.measuredClients()
	if err != nil {
		return err
	}
	crecovery.SetUpProcess()
	statusEvents := &lateRecorder{}
	mgr, err := ctrl.NewManager(restConfig, o.managerOptions(scheme, clients, statusEvents))
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	recorder := message.NewRecorder(mgr.GetEventRecorderFor("kruise-manager"))
	statusEvents.Store(&recorder)
	ranks, rounds := rememberedBytes(cgroup.SystemFiles())
	p := components{
		Options: o, mgr: mgr, host: host, rounds: explain.NewStore(explain.WithMaxBytes(rounds)), ranker: rank.New(host.Engine(), rank.WithMaxBytes(ranks)),
		events: events, writes: writes,
	}
	if err := p.registerMetrics(); err != nil {
		return err
	}
	if err := p.addToManager(ctx); err != nil {
		return err
	}
	log.Info("Starting", "policies", bundle.ShortRevision(host.Engine().ActiveSnapshot().Revision()))
	return mgr.Start(ctx)
}

// registerMetrics registers the metrics that the parts share.
func (p *components) registerMetrics() (err error) {
	if p.leaks, err = registerLeaks(metrics.Registry); err != nil {
		return err
	}
	if p.expiry, err = certs.RegisterExpiry(metrics.Registry); err != nil {
		return err
	}
	if err := rolloutmetrics.RegisterMetrics(metrics.Registry, p.rounds); err != nil {
		return err
	}
	p.guarding, err = p.newProtectionDeps()
	return err
}

// policyHost makes the host of the policy engine of this process.
func (o *Options) policyHost(config *rest.Config, events *policyEvents) (*policyhost.Host, error) {
	replica, err := o.webhooks.replicaName()
	if err != nil {
		return nil, err
	}
	opts := []policyhost.Option{
		policyhost.WithDecisionLogs(&o.decisionLogs), policyhost.WithMetrics(metrics.Registry),
		policyhost.WithReservedMemory(o.gateMemory), policyhost.WithActivated(events.notifyActivated), policyhost.WithBefore(events.beforeActivation),
	}
	if o.PolicyDir != "" {
		opts = append(opts, policyhost.WithDirectory(o.PolicyDir))
	}
	return policyhost.New(config, o.webhooks.namespace, replica, opts...)
}

func (o *Options) managerOptions(scheme *runtime.Scheme, clients *webhookserver.Clients, events *lateRecorder) ctrl.Options {
	opts := ctrl.Options{
		NewCache:                   crecovery.NewCache,
		Scheme:                     scheme,
		Metrics:                    server.Options{BindAddress: o.MetricsAddr},
		HealthProbeBindAddress:     o.ProbeAddr,
		LeaderElection:             o.LeaderElection,
		LeaderElectionID:           o.LeaderElectionID,
		LeaderElectionNamespace:    o.LeaderElectionNS,
		LeaderElectionResourceLock: o.LeaderElectionLock,
		LeaseDuration:              &o.LeaseDuration,
		RenewDeadline:              &o.RenewDeadline,
		RetryPeriod:                &o.RetryPeriod,
		// The next leader need not wait: this process ends when it stops leading.
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{CacheSyncTimeout: o.CacheSyncTimeout},
		WebhookServer: webhookserver.NewGracefulServer(clients.VerifiedServer(webhook.NewServer(webhook.Options{
			Port: o.webhooks.port, CertDir: o.webhooks.certDir, TLSOpts: []func(*tls.Config){clients.AskFor},
		}))),
		Cache: cache.Options{
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}: {Transform: cache.TransformStripManagedFields()},
			},
			DefaultTransform: cacheTransform,
		},
		Client:    client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		NewClient: o.newClient(events),
	}
	if o.Pprof {
		opts.PprofBindAddress = o.PprofAddr
	}
	if d, err := time.ParseDuration(o.SyncPeriod); err == nil && d > 0 { // Complete has refused values that do not parse
		opts.Cache.SyncPeriod = &d
	}
	if o.Namespace != "" {
		opts.Cache.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	return opts
}

// addHealthChecks adds the health checks. Alive means that the process answers. Ready means that the
// certificates are in place, the webhooks are served with them, and the policies that some webhooks
// need are loaded.
func (p components) addHealthChecks(s *startup) error {
	if err := p.mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding healthz: %w", err)
	}
	check := func(req *http.Request) error {
		select {
		case <-s.serving:
		default:
			return s.certificatesMissing()
		}
		if err := p.host.CheckReady(req); err != nil {
			return err
		}
		return p.mgr.GetWebhookServer().StartedChecker()(req) // GetWebhookServer starts the server, so it is not called before the webhooks are registered
	}
	if err := p.mgr.AddReadyzCheck("webhook-ready", check); err != nil {
		return fmt.Errorf("adding readyz: %w", err)
	}
	return nil
}

func (s *startup) certificatesMissing() error {
	if why := s.certificates.NotReadyError(); why != nil {
		return fmt.Errorf("the certificates of the webhooks are not ready: %w", why)
	}
	return errors.New("the certificates of the webhooks are not ready")
}
