// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/policybundle"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/cgroup"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// newBundleReconciler makes the controller that publishes and follows policy bundles.
func (p components) newBundleReconciler() (*policybundle.Reconciler, error) {
	hosts, err := fetch.ParseHosts(p.TenantBundleHosts)
	if err != nil {
		return nil, fmt.Errorf("reading --tenant-bundle-hosts: %w", err)
	}
	client, live, ns := p.mgr.GetClient(), p.mgr.GetAPIReader(), p.webhooks.namespace
	store := bundlerevision.Store{Client: client, Reader: live, Namespace: ns}
	account := fetch.WithServiceAccount(types.NamespacedName{Namespace: ns, Name: serviceAccount})
	r := &policybundle.Reconciler{
		Client: client, Reader: live, Events: p.recorderFor("policybundle-controller"),
		Leads: p.mgr.Elected(), Host: p.host,
		Publisher: &policybundle.Publisher{
			Platform: fetch.New(live, account), Tenants: fetch.New(live, account, fetch.WithHosts(hosts)),
			Gate:  gate.New(p.host.Engine().BuiltinBundle(), gate.WithRunner(gate.Child{Memory: p.gateMemory, Left: func() (uint64, bool) { return gate.MemoryLeft(cgroup.SystemFiles()) }})),
			Store: store, Host: p.host, Clock: time.Now,
			Records: func() []decision.Record { return p.host.DecisionRecords().FindRecords(record.Query{}) },
		},
	}
	if p.webhooks.pod != "" {
		r.Alive = p.listPodNames
	}
	return r, nil
}

// serviceAccount is the name of the manager's service account in the chart.
const serviceAccount = "kruise-manager"

// listPodNames lists the pods in the manager's namespace, among them the other replicas.
func (p components) listPodNames(ctx context.Context) ([]string, error) {
	list := &corev1.PodList{}
	if err := p.mgr.GetClient().List(ctx, list, client.InNamespace(p.webhooks.namespace)); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}

// loadPolicies loads the policy bundles. If their CRDs are installed, it publishes and follows them
// from then on.
func (s *startup) loadPolicies(ctx context.Context) (loaded bool, err error) {
	if loaded, err = s.p.host.LoadBundles(ctx); err != nil || !loaded {
		return false, err
	}
	if err := s.bundles.SetupWithManager(s.p.mgr); err != nil {
		return false, fmt.Errorf("adding the policy bundle controller: %w", err)
	}
	return true, nil
}
