// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
	"github.com/regatta-sh/regatta/controllers/explain/serve"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/policybundle"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
	"github.com/regatta-sh/regatta/controllers/sidecarset"
	"github.com/regatta-sh/regatta/controllers/webhook/convert"
	webhookpod "github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/server"
	"github.com/regatta-sh/regatta/controllers/webhook/statefulset"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/controllers/workload/agents"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine/rank"
)

// components are the parts of the manager.
type components struct {
	*Options
	mgr    ctrl.Manager
	host   *policyhost.Host
	rounds *explain.Store
	ranker *rank.Ranker
	writes *inflight.Window // writes of pods by all workloads
	leaks  leakCounter
	expiry *certs.ExpiryMetric

	events    *policyEvents
	guarding  *protectionDeps
	budgeting *budgetDeps
	spreading *spreadDeps
	steps     webhookpod.Steps
	guards    *webhookconfig.Controller
	agents    *agents.Deployed // nil without node agents
}

// addToManager adds everything to the manager. Certificates come first: controllers that write objects
// which the manager's webhooks check wait for them.
func (p components) addToManager(ctx context.Context) error {
	issued := certs.Config{
		Secret: types.NamespacedName{Namespace: p.webhooks.namespace, Name: p.webhooks.secret},
		Dir:    p.webhooks.certDir, Service: p.webhooks.service, Host: p.webhooks.host,
		CRDs: convertingCRDs(p.mgr.GetScheme()), RenewBefore: p.webhooks.renewBefore,
		External: p.Gates.Enabled(features.EnableExternalCerts), Expiry: p.expiry,
	}
	if p.DecisionsAPI {
		issued.APIService = explain.APIService
	}
	certificates, err := certs.SetupWithManager(p.mgr, issued, p.mgr.GetAPIReader())
	if err != nil {
		return err
	}
	if p.budgeting, err = p.newBudgetDeps(); err != nil {
		return err
	}
	if p.spreading, err = p.newSpreadDeps(); err != nil {
		return err
	}
	if p.steps, err = p.podSteps(); err != nil {
		return err
	}
	if p.guards, err = p.newConfigController(p.steps); err != nil {
		return err
	}
	p.events.writer.Store(p.guards.Writer)
	if p.Gates.Enabled(features.KruiseDaemon) {
		p.agents = agents.NewDeployed(p.mgr.GetClient(), p.webhooks.agents, time.Now)
	}
	bundles, err := p.newBundleReconciler()
	if err != nil {
		return err
	}
	s := &startup{p: p, certificates: certificates, bundles: bundles, serving: make(chan struct{})}
	if err := p.addHealthChecks(s); err != nil {
		return err
	}
	if err := addLeaderGauge(p.mgr); err != nil {
		return err
	}
	if err := rollout.AddIndexes(ctx, p.mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := sidecarset.SetupIndexes(ctx, p.mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("indexing pods by their SidecarSets: %w", err)
	}
	if err := nodes.AddIndex(ctx, p.mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := p.explainTo(ctx, certificates.Ready(), issued.ServerName()); err != nil {
		return err
	}
	return p.mgr.Add(s)
}

// convertingCRDs are the names of the CRDs whose objects the manager's webhook converts.
func convertingCRDs(scheme *runtime.Scheme) []string {
	var out []string
	for _, r := range convert.ConvertibleResources(scheme) {
		out = append(out, r.String())
	}
	return out
}

// explainTo serves explanations of decisions on every replica. The certificates of replicas are for name.
func (p components) explainTo(ctx context.Context, ready <-chan struct{}, name string) error {
	if p.DecisionsAddr == "0" {
		return nil
	}
	who, may, err := serve.NewDelegatedAuth(ctx, p.mgr.GetConfig())
	if err != nil {
		return err
	}
	peers, err := p.newPeerFinder(name)
	if err != nil {
		return err
	}
	return p.mgr.Add(crecovery.WrapRunnable("explain", &serve.Server{
		Addr: p.DecisionsAddr, CertDir: p.webhooks.certDir, Ready: ready, Store: p.rounds, Replica: p.host.Name(), Who: who, May: may, Peers: peers,
		Records: p.host.DecisionRecords(), Lines: p.host.RecordEncoder(),
	}))
}

// newPeerFinder returns a function that lists the other replicas, which are asked for decisions that
// this one does not have. It is nil for a manager outside a pod, which cannot find other replicas.
func (p components) newPeerFinder(name string) (func(context.Context) ([]replicas.Replica, error), error) {
	_, text, err := net.SplitHostPort(p.DecisionsAddr)
	port, _ := strconv.Atoi(text) // validateFlags has checked that it is a number
	if err != nil || port == 0 || p.webhooks.pod == "" {
		return nil, nil
	}
	var pods client.Reader = p.mgr.GetClient()
	if p.Namespace != "" { // the cache may have another namespace only
		pods = p.mgr.GetAPIReader()
	}
	peers, err := replicas.NewPeers(p.mgr.GetConfig(), pods, p.webhooks.namespace, p.webhooks.pod, port, p.webhooks.certDir, name)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask the other managers: %w", err)
	}
	return peers.ListPeers, nil
}

// newRateLimiter makes the rate limiter of retries of a controller. The delay of an object grows with each failure; all
// objects together are retried at most at the rate of the flags; but no delay exceeds the maximum of the flags.
func (p components) newRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return requeue.NewRateLimiter(p.RateBaseDelay, p.RateMaxDelay, p.RateQPS, p.RateBucket)
}

// recorderFor records events of a component, whose messages are bounded.
func (p components) recorderFor(component string) record.EventRecorder {
	return message.NewRecorder(p.mgr.GetEventRecorderFor(component))
}

func (p components) webhooksTo(mgr ctrl.Manager, bundles *policybundle.Publisher) error {
	on := p.Gates.Enabled
	err := server.RegisterWebhooks(mgr, server.Options{
		KeepTemplates:        on(features.TemplateNoDefaults),
		HostNetworkHostPorts: on(features.DefaultHostNetworkHostPortsInPodTemplates),
		NoPrivileged:         !p.AllowPrivileged,
		PatchAnyMetadata:     on(features.SidecarSetPatchPodMetadataDefaultsAllowed),
		Gates:                on,
		NoBudgets:            !p.countsBudgets(),
		NoSpreads:            !on(features.WorkloadSpread),
		StatefulSets:         statefulset.Gates{AutoDeletePVC: on(features.StatefulSetAutoDeletePVC), AutoResizePVC: on(features.StatefulSetAutoResizePVCGate)},
		Namespace:            p.webhooks.namespace,
		AwaitSidecarSet:      p.guards.AwaitSidecarSet,
		AwaitObject:          p.guards.AwaitObject,
		Bundles:              bundles,
	})
	if err != nil {
		return fmt.Errorf("adding the webhooks: %w", err)
	}
	return nil
}
