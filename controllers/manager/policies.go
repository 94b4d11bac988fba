package manager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

func bundleKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{policyv1alpha1.GroupVersion.WithKind("ClusterPolicyBundle"), policyv1alpha1.GroupVersion.WithKind("PolicyBundle")}
}

// bundlesInstalled says whether both kinds of bundles are.
func (l *late) bundlesInstalled() (bool, error) {
	for _, kind := range bundleKinds() {
		if found, err := l.find(kind); !found || err != nil {
			return false, err
		}
	}
	return true, nil
}

// bundles publishes and follows policy bundles.
func (p parts) bundles() (*policybundle.Reconciler, error) {
	hosts, err := fetch.ParseHosts(p.TenantBundleHosts)
	if err != nil {
		return nil, fmt.Errorf("reading --tenant-bundle-hosts: %w", err)
	}
	client, live, ns := p.mgr.GetClient(), p.mgr.GetAPIReader(), p.webhooks.namespace
	store := bundlerevision.Store{Client: client, Reader: live, Namespace: ns}
	account := fetch.WithServiceAccount(types.NamespacedName{Namespace: ns, Name: serviceAccount})
	r := &policybundle.Reconciler{
		Client: client, Reader: live, Events: p.mgr.GetEventRecorderFor("policybundle-controller"),
		Leads: p.mgr.Elected(), RolledBack: p.news.rolledBack,
		Follower: &policybundle.Follower{Store: store, Library: p.library, Name: p.replica},
		Publisher: &policybundle.Publisher{
			Platform: fetch.New(live, account), Tenants: fetch.New(live, account, fetch.WithHosts(hosts)),
			Gate:  gate.New(p.engine.Builtin(), gate.WithRunner(gate.Child{Memory: p.gateMemory})),
			Store: store, Library: p.library, Clock: time.Now,
			Records: func() []decision.Record { return p.records.Find(record.Query{}) },
		},
	}
	if p.webhooks.pod != "" {
		r.Alive = p.pods
	}
	return r, nil
}

// serviceAccount is the name that the chart gives it.
const serviceAccount = "kruise-manager"

// pods names those in our namespace, among them the other replicas.
func (p parts) pods(ctx context.Context) ([]string, error) {
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

// policies loads the policy bundles if their CRD is installed. While the API
// server does not say, those on disk decide.
func (l *late) policies(ctx context.Context) (loaded bool, err error) {
	bundles, err := l.p.bundles()
	if err != nil {
		return false, err
	}
	asked, tooLong := l.ask(ctx, bundles), time.After(patience)
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-tooLong:
			l.restore(ctx)
		case said := <-asked:
			if !l.enforce(ctx, bundles, said.bundles) || !said.installed {
				return false, nil
			}
			return true, l.followBundles(bundles)
		}
	}
}

// listing is what the API server said of the policy bundles.
type listing struct {
	bundles   []policyv1alpha1.AnyPolicyBundle
	installed bool
}

// ask asks the API server for the policy bundles until it answers.
func (l *late) ask(ctx context.Context, bundles *policybundle.Reconciler) <-chan listing {
	answer := make(chan listing, 1)
	go func() {
		_ = wait.PollUntilContextCancel(ctx, tryAgain, true, func(ctx context.Context) (bool, error) { // who asks looks at ctx
			said := listing{}
			var err error
			if said.installed, err = l.bundlesInstalled(); err == nil && said.installed {
				said.bundles, err = bundles.List(ctx)
			}
			if err != nil {
				if ctx.Err() == nil {
					klog.ErrorS(err, "Loading the policy bundles failed and is tried again; nothing is decided without them, or those on disk")
				}
				return false, nil
			}
			answer <- said
			return true, nil
		})
	}()
	return answer
}

// enforce makes bundles active and keeps them on disk; false if ctx is done.
func (l *late) enforce(ctx context.Context, bundles *policybundle.Reconciler, listed []policyv1alpha1.AnyPolicyBundle) bool {
	err := wait.PollUntilContextCancel(ctx, tryAgain, true, func(ctx context.Context) (bool, error) {
		err := bundles.Enforce(ctx, listed)
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Loading the policy bundles failed and is tried again; nothing is decided without them, or those on disk")
		}
		return err == nil, nil
	})
	if err == nil {
		l.p.library.KeepOn(l.p.disk())
	}
	return err == nil
}

// restore lets the policies on disk decide, if there are any.
func (l *late) restore(ctx context.Context) {
	disk := l.p.disk()
	if disk == nil {
		return
	}
	n, err := l.p.library.Restore(ctx, disk)
	if err != nil {
		klog.ErrorS(err, "The API server does not say which policies there are, and there are none on disk")
		return
	}
	klog.InfoS("The API server does not say which policies there are; those on disk decide", "bundles", n)
	l.decide()
}

// decide lets those decide that ask policies.
func (l *late) decide() {
	select {
	case <-l.decided:
	default:
		close(l.decided)
	}
}

// followBundles follows the policy bundles from now on.
func (l *late) followBundles(bundles *policybundle.Reconciler) error {
	if err := bundles.SetupWithManager(l.p.mgr); err != nil {
		return fmt.Errorf("adding the policy bundle controller: %w", err)
	}
	return nil
}
