package policybundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// Load makes every bundle active before anything is decided: the newest files,
// or the last good ones where these are refused. A bundle that has neither is
// left out, and its status says so once this replica leads.
func (r *Reconciler) Load(ctx context.Context) error {
	listed, err := r.List(ctx)
	if err != nil {
		return err
	}
	return r.Enforce(ctx, listed)
}

// List asks the API server for all bundles.
func (r *Reconciler) List(ctx context.Context) ([]policy.ClusterPolicyBundle, error) {
	list := &policy.ClusterPolicyBundleList{}
	if err := r.Keeper.Reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing policy bundles: %w", err)
	}
	return list.Items, nil
}

// Enforce makes these bundles active, and takes out all others.
func (r *Reconciler) Enforce(ctx context.Context, bundles []policy.ClusterPolicyBundle) error {
	slices.SortFunc(bundles, earlier)
	for _, name := range r.Library.Names() {
		if !slices.ContainsFunc(bundles, func(b policy.ClusterPolicyBundle) bool { return b.Name == name }) {
			if err := r.Library.Remove(ctx, name); err != nil {
				return err
			}
		}
	}
	for i := range bundles {
		b := &bundles[i]
		refused, err := r.admit(ctx, b)
		if err != nil {
			return err
		}
		if refused != nil {
			ctrl.LoggerFrom(ctx).Error(refused, "The newest files of a policy bundle are not enforced", "bundle", b.Name, "enforced", r.Library.Active(b.Name))
		}
	}
	return nil
}

// earlier orders bundles as they came to decide, since of two that claim one
// package the first has it: a restart must not give it to the other.
func earlier(a, b policy.ClusterPolicyBundle) int {
	active := func(x policy.ClusterPolicyBundle) int {
		if x.Status.ActiveRevision != "" {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(active(a), active(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// admit makes a bundle's newest files active, or else, if none of its files
// are, the last good ones.
func (r *Reconciler) admit(ctx context.Context, b *policy.ClusterPolicyBundle) (*Refusal, error) {
	refused, err := r.newest(ctx, b)
	if err != nil || refused == nil || r.Library.Active(b.Name) != "" {
		return refused, err
	}
	last, err := r.Keeper.LastGood(ctx, b)
	if err != nil {
		return nil, err
	}
	if last == nil || maps.Equal(last, files(b)) {
		return refused, nil
	}
	_, err = r.Library.Admit(ctx, b.Name, last)
	var again *Refusal
	if errors.As(err, &again) {
		told := *refused // it is remembered, and must not grow
		told.Errors = append(slices.Clone(refused.Errors), "the last good files are refused too: "+again.Error())
		return &told, nil
	}
	return refused, err
}

// newest makes a bundle's newest files active, unless they were rolled back.
func (r *Reconciler) newest(ctx context.Context, b *policy.ClusterPolicyBundle) (*Refusal, error) {
	if refused := rolledBack(b); refused != nil {
		if active := r.Library.Files(b.Name); active != nil && maps.Equal(active, files(b)) {
			if err := r.Library.Remove(ctx, b.Name); err != nil { // another replica rolled back
				return nil, err
			}
		}
		return refused, nil
	}
	_, err := r.Library.Admit(ctx, b.Name, files(b))
	var refused *Refusal
	if errors.As(err, &refused) {
		return refused, nil
	}
	return nil, err
}

// rolledBack is what the status says of files that a manager rolled back. They
// stay out after its restart, and with the next leader, until they change.
func rolledBack(b *policy.ClusterPolicyBundle) *Refusal {
	c := meta.FindStatusCondition(b.Status.Conditions, policy.PolicyBundleReady)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != policy.PolicyBundleRolledBackReason || c.ObservedGeneration != b.Generation {
		return nil
	}
	return &Refusal{Reason: c.Reason, Errors: slices.Clone(b.Status.Errors)}
}
