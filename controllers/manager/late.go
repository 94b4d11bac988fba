package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/unserved"
)

// late adds the webhooks once there are certificates, and the controllers once
// there are their kinds.
type late struct {
	p            parts
	certificates *certs.Certificates
	// serving is closed when the webhooks are on their server.
	serving chan struct{}
}

var _ manager.LeaderElectionRunnable = &late{}

// tryAgain is how long to wait for what another has to do first.
const tryAgain = 3 * time.Second

// NeedLeaderElection is false: every replica serves webhooks, and the manager
// itself lets only the leader reconcile.
func (l *late) NeedLeaderElection() bool { return false }

// Start adds one part after the other. The webhooks that check what users write
// come first, as they need no policies; nothing is decided before all are in.
func (l *late) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(l.p.WebhookTimeout):
		return l.tooLate()
	case <-l.certificates.Ready():
	}
	if err := l.p.webhooksTo(l.p.mgr); err != nil {
		return err
	}
	l.p.protectionTo(l.p.mgr.GetWebhookServer(), l.p.host.Ready())
	l.p.podsTo(l.p.mgr.GetWebhookServer(), l.p.host.Ready())
	close(l.serving)
	loaded, err := l.policies(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if err := l.guard(ctx); err != nil {
		return err
	}
	if err := l.p.readinessTo(); err != nil {
		return err
	}
	go l.budgets(ctx)
	for _, w := range kinds.Workloads() {
		l.await(ctx, w.GroupVersionKind, w.Kind+"s are not reconciled")
	}
	if !loaded { // CRDs are installed one after the other
		if loaded, err = l.policies(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if err := l.p.controllersTo(l.p.mgr); err != nil {
		return err
	}
	go l.follow(ctx, unserved.Kinds(l.p.mgr.GetScheme(), l.p.served()...))
	if !loaded { // a controller whose CRD is missing is left out (PL-04)
		for _, kind := range []string{"ClusterPolicyBundle", "PolicyBundle"} {
			l.await(ctx, policyv1alpha1.GroupVersion.WithKind(kind), "only the built-in policies decide")
		}
		if _, err := l.policies(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// served are the kinds that have a controller.
func (p parts) served() []string {
	out := []string{"ClusterPolicyBundle", "PolicyBundle"}
	for _, w := range kinds.Workloads() {
		out = append(out, w.Kind)
	}
	if p.countsBudgets() {
		out = append(out, "PodUnavailableBudget")
	}
	return out
}

func (l *late) tooLate() error {
	why := l.certificates.Why()
	if why == nil {
		return fmt.Errorf("the certificates of the webhooks were not ready after %s, which is --webhook-initialize-timeout: their CA is not in the webhook configurations yet; the log of cert-rotation may say why", l.p.WebhookTimeout)
	}
	return fmt.Errorf("the certificates of the webhooks were not ready after %s, which is --webhook-initialize-timeout: %w", l.p.WebhookTimeout, why)
}

// installed asks the API server anew for a kind that it did not have before.
func (l *late) installed(kind schema.GroupVersionKind) bool {
	found, err := l.find(kind)
	if err != nil {
		klog.ErrorS(err, "Asking for a kind", "kind", kind.Kind)
	}
	return found
}

func (l *late) find(kind schema.GroupVersionKind) (bool, error) {
	_, err := l.p.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// await waits until a kind is installed or ctx is done.
func (l *late) await(ctx context.Context, kind schema.GroupVersionKind, until string) {
	told := false
	_ = wait.PollUntilContextCancel(ctx, tryAgain, true, func(context.Context) (bool, error) { // the caller looks at ctx
		if l.installed(kind) {
			return true, nil
		}
		if !told {
			klog.ErrorS(nil, "A CRD is not installed; waiting for it", "crd", strings.ToLower(kind.Kind)+"s."+kind.Group, "until then", until)
		}
		told = true
		return false, nil
	})
}

// follow tells users of kinds that have no controller yet so. One whose CRD is not
// installed has no users; it is looked for again, ever less often, since CRDs are
// installed one after the other.
func (l *late) follow(ctx context.Context, kinds []schema.GroupVersionKind) {
	mgr := l.p.mgr
	for delay := tryAgain; len(kinds) > 0; delay = min(2*delay, time.Minute) {
		kinds = slices.DeleteFunc(kinds, func(kind schema.GroupVersionKind) bool {
			if !l.installed(kind) {
				return false
			}
			r := &unserved.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Kind: kind, Now: time.Now}
			if err := r.SetupWithManager(mgr); err != nil {
				klog.ErrorS(err, "Users of a kind are not told that nothing acts on it", "kind", kind.Kind)
			}
			return true
		})
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}
