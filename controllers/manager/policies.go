package manager

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle"
)

func bundleKind() schema.GroupVersionKind {
	return policyv1alpha1.GroupVersion.WithKind("ClusterPolicyBundle")
}

// policies loads the policy bundles if their CRD is installed. While the API
// server does not say, those on disk decide.
func (l *late) policies(ctx context.Context) (loaded bool, err error) {
	bundles := l.p.bundles()
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
	bundles   []policyv1alpha1.ClusterPolicyBundle
	installed bool
}

// ask asks the API server for the policy bundles until it answers.
func (l *late) ask(ctx context.Context, bundles *policybundle.Reconciler) <-chan listing {
	answer := make(chan listing, 1)
	go func() {
		_ = wait.PollUntilContextCancel(ctx, tryAgain, true, func(ctx context.Context) (bool, error) { // who asks looks at ctx
			said := listing{}
			var err error
			if said.installed, err = l.find(bundleKind()); err == nil && said.installed {
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
func (l *late) enforce(ctx context.Context, bundles *policybundle.Reconciler, listed []policyv1alpha1.ClusterPolicyBundle) bool {
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
