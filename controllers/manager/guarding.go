// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/webhook/deletion"
	webhookpod "github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// protectionDeps are the parts that the webhooks of protection share.
type protectionDeps struct {
	reporter *protection.Reporter
	recent   *protection.Recent
	rules    *webhookconfig.Rules
	deletion *deletion.Handler
}

func (o *Options) protectionGates() points.Gates {
	return webhookconfig.GatesOf(o.Gates.Enabled)
}

func (p components) newProtectionDeps() (*protectionDeps, error) {
	counters, err := protection.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfigAndClient(p.mgr.GetConfig(), p.mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for what deletions take along: %w", err)
	}
	g := &protectionDeps{
		reporter: protection.NewReporter(p.host.Engine(), p.rounds, protection.WithEvents(p.protectionEvents()), protection.WithMetrics(counters), protection.WithLog(p.protectionLog())),
		recent:   protection.NewRecent(time.Now),
		rules:    webhookconfig.NewRules(p.host.Engine(), p.protectionGates()),
	}
	g.deletion = &deletion.Handler{
		Engine: p.host.Engine(), Kinds: g.rules, Reporter: g.reporter, Recent: g.recent,
		Live: p.mgr.GetAPIReader(), Metadata: objects, Now: time.Now,
	}
	return g, nil
}

// newConfigController makes the controller that configures which requests the API server sends to the webhooks
// of protection.
func (p components) newConfigController(steps webhookpod.Steps) (*webhookconfig.Controller, error) {
	undecided := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "regatta_protection_undecided", Help: "1 while the policies do not say what is protected, so that it stays as it was configured.",
	})
	if err := metrics.Registry.Register(undecided); err != nil {
		return nil, fmt.Errorf("registering regatta_protection_undecided: %w", err)
	}
	precision := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "regatta_sidecarset_webhook_precision",
		Help: "0 while the API server sends the new pods that SidecarSets select by their labels, 1 while it sends those that have a label which a SidecarSet selects by, 2 while it sends all.",
	})
	if err := metrics.Registry.Register(precision); err != nil {
		return nil, fmt.Errorf("registering regatta_sidecarset_webhook_precision: %w", err)
	}
	overridden := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "regatta_protection_webhooks_overridden",
		Help: "How many webhooks of protection another client keeps from what they should be, by changing them again when that is put back.",
	})
	if err := metrics.Registry.Register(overridden); err != nil {
		return nil, fmt.Errorf("registering regatta_protection_webhooks_overridden: %w", err)
	}
	return &webhookconfig.Controller{Activated: p.events.guards, Writer: &webhookconfig.Writer{
		Client: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Rules: p.guarding.rules, Events: p.protectionEvents(), Now: time.Now,
		Undecided: undecided, Precision: precision, Overridden: overridden,
		Config: webhookconfig.Config{
			Namespace: p.webhooks.namespace, Pods: p.Gates.Enabled(features.PodWebhook), Created: steps.CreatedMatches(), Stored: steps.StoredMatches(),
			PodFailurePolicy: admissionv1.FailurePolicyType(p.PodFailurePolicy), TimeoutSeconds: p.WebhookTimeoutSeconds,
		},
	}}, nil
}

func (p components) protectionEvents() record.EventRecorder {
	return p.recorderFor("kruise-protection")
}

// protectionTo adds the webhooks of protection, which answer once policies are loaded.
func (p components) protectionTo(server webhook.Server, decided <-chan struct{}) {
	server.Register(webhookconfig.ValidateDeletionPath, protection.ServeWhenReady(decided, &webhook.Admission{Handler: p.guarding.deletion}))
}

// addGuards configures which requests the API server sends, and follows the budgets once their CRD is
// installed.
func (s *startup) addGuards(ctx context.Context) error {
	if err := s.p.guards.SetupWithManager(s.p.mgr); err != nil {
		return fmt.Errorf("adding the guards of protection: %w", err)
	}
	if err := s.p.watchPods(ctx); err != nil {
		return err
	}
	recovery.GoUntilDone(ctx, "startup", func(ctx context.Context) {
		s.waitForKind(ctx, policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget"), "no budget is guarded")
		if ctx.Err() != nil {
			return
		}
		if err := s.p.guards.WatchBudgets(); err != nil {
			klog.ErrorS(err, "Namespaces with budgets are found once a minute only")
		}
	})
	if !s.p.Gates.Enabled(features.PodWebhook) {
		return nil
	}
	if err := s.p.warmSidecars(ctx); err != nil {
		return err
	}
	follows := []struct {
		kind, without string
		watch         func() error
	}{
		{"SidecarSet", "no pod gets the containers of SidecarSets", s.p.guards.WatchSidecarSets},
		{"PersistentPodState", "no pod comes back to where it was", s.p.guards.WatchPersistentPodStates},
	}
	if s.p.Gates.Enabled(features.WorkloadSpread) {
		follows = append(follows, struct {
			kind, without string
			watch         func() error
		}{"WorkloadSpread", "no pod is put into subsets", s.p.guards.WatchSpreads})
	}
	for _, follow := range follows {
		recovery.GoUntilDone(ctx, "startup", func(ctx context.Context) {
			s.waitForKind(ctx, kruise.GroupVersion.WithKind(follow.kind), follow.without)
			if ctx.Err() != nil {
				return
			}
			if err := follow.watch(); err != nil {
				klog.ErrorS(err, "Which namespaces have objects of a kind is found once a minute only", "kind", follow.kind)
			}
		})
	}
	return nil
}

// warmSidecars makes every replica fill the caches that the webhook of pods reads, before a pod waits for them.
func (p components) warmSidecars(ctx context.Context) error {
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	for _, o := range []client.Object{namespaces, &appsv1.ControllerRevision{}} {
		if _, err := p.mgr.GetCache().GetInformer(ctx, o, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %T: %w", o, err)
		}
	}
	return nil
}

// watchPods makes every replica watch which pods are deleted, whichever replica allowed the deletion.
func (p components) watchPods(ctx context.Context) error {
	informer, err := p.mgr.GetCache().GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching which pods go: %w", err)
	}
	if _, err := informer.AddEventHandler(p.guarding.recent.Watch()); err != nil {
		return fmt.Errorf("watching which pods go: %w", err)
	}
	return nil
}

// protectionLog is the file that refused requests are written to, nil if it cannot be written:
// requests are refused all the same, and metrics count them.
func (o *Options) protectionLog() *protection.Log {
	path := filepath.Join(o.ProtectionLogPath, "protection.log")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		klog.V(2).InfoS("Refused requests are not written to a file", "path", path, "reason", err.Error())
		return nil
	}
	return protection.NewLog(f)
}
