package policybundle

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// List asks the API server for all bundles.
func (r *Reconciler) List(ctx context.Context) ([]policy.AnyPolicyBundle, error) {
	platform, tenants := &policy.ClusterPolicyBundleList{}, &policy.PolicyBundleList{}
	if err := r.Reader.List(ctx, platform); err != nil {
		return nil, fmt.Errorf("listing policy bundles: %w", err)
	}
	if err := r.Reader.List(ctx, tenants); err != nil {
		return nil, fmt.Errorf("listing policy bundles: %w", err)
	}
	out := make([]policy.AnyPolicyBundle, 0, len(platform.Items)+len(tenants.Items))
	for i := range platform.Items { // the platform's first: they keep tenants' out
		out = append(out, &platform.Items[i])
	}
	for i := range tenants.Items {
		out = append(out, &tenants.Items[i])
	}
	return out, nil
}

// Enforce makes these bundles stand as their status says before anything is
// decided, and takes out all others. One whose revision cannot be read or does
// not compile is left out, and its status says so.
func (r *Reconciler) Enforce(ctx context.Context, bundles []policy.AnyPolicyBundle) error {
	library := r.Follower.Library
	for _, key := range library.Keys() {
		if !slices.ContainsFunc(bundles, func(b policy.AnyPolicyBundle) bool { return keyOf(b) == key }) {
			if err := library.Remove(ctx, key); err != nil {
				return err
			}
		}
	}
	for _, b := range bundles {
		me, err := r.Follower.Follow(ctx, b)
		if err != nil {
			return err
		}
		if me.Problem != "" {
			ctrl.LoggerFrom(ctx).Error(nil, "A policy bundle is not enforced as it should be", "bundle", keyOf(b), "problem", me.Problem, "enforced", me.Revision)
		}
	}
	return nil
}
