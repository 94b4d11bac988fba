// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"

	"github.com/regatta-sh/regatta/engine/recovery"
)

const (
	// patience is how long the API server may take to answer before the bundles on
	// disk decide.
	patience = 5 * time.Second
	// retryInterval is how long LoadBundles waits before it tries again.
	retryInterval = 3 * time.Second
)

// LoadBundles makes the policy bundles of the cluster decide. It tries until they are loaded or ctx is
// done. While the API server does not list them, those on disk decide. It reports whether the kinds of
// bundles are installed: if they are not, the built-in policies decide alone, and LoadBundles must be
// called again once they are.
func (h *Host) LoadBundles(ctx context.Context) (installed bool, err error) {
	answered, tooLong := h.pollBundles(ctx), time.After(patience)
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tooLong:
			h.tryRestore(ctx)
		case said := <-answered:
			if err := h.enforceBundles(ctx, said.bundles); err != nil {
				return false, err
			}
			h.setReady()
			return said.installed, nil
		}
	}
}

// listing is the API server's answer to a list of the policy bundles.
type listing struct {
	bundles   []policy.AnyPolicyBundle
	installed bool
}

// pollBundles lists the policy bundles until the API server answers.
func (h *Host) pollBundles(ctx context.Context) <-chan listing {
	answer := make(chan listing, 1)
	recovery.GoUntilDone(ctx, "policyhost", func(ctx context.Context) {
		_ = wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) { // LoadBundles checks ctx
			said := listing{}
			var err error
			if said.installed, err = h.areKindsInstalled(); err == nil && said.installed {
				said.bundles, err = h.listBundles(ctx)
			}
			if err != nil {
				notLoaded(ctx, err)
				return false, nil
			}
			answer <- said
			return true, nil
		})
	})
	return answer
}

func notLoaded(ctx context.Context, err error) {
	if ctx.Err() == nil {
		klog.ErrorS(err, "Loading the policy bundles failed and is tried again; nothing is decided without them, or those on disk")
	}
}

// areKindsInstalled reports whether both kinds of bundles are installed.
func (h *Host) areKindsInstalled() (bool, error) {
	for _, b := range []policy.AnyPolicyBundle{&policy.ClusterPolicyBundle{}, &policy.PolicyBundle{}} {
		gvk, err := h.live.GroupVersionKindFor(b)
		if err != nil {
			return false, err
		}
		_, err = h.live.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// emptyBundle returns an empty object of the kind of a key.
func emptyBundle(key Key) policy.AnyPolicyBundle {
	if key.Namespace != "" {
		return &policy.PolicyBundle{}
	}
	return &policy.ClusterPolicyBundle{}
}

// listBundles lists all bundles in the API server.
func (h *Host) listBundles(ctx context.Context) ([]policy.AnyPolicyBundle, error) {
	platform, tenants := &policy.ClusterPolicyBundleList{}, &policy.PolicyBundleList{}
	if err := h.live.List(ctx, platform); err != nil {
		return nil, fmt.Errorf("listing policy bundles: %w", err)
	}
	if err := h.live.List(ctx, tenants); err != nil {
		return nil, fmt.Errorf("listing policy bundles: %w", err)
	}
	out := make([]policy.AnyPolicyBundle, 0, len(platform.Items)+len(tenants.Items))
	for i := range platform.Items { // the platform's bundles first: they displace those of tenants
		out = append(out, &platform.Items[i])
	}
	for i := range tenants.Items {
		out = append(out, &tenants.Items[i])
	}
	return out, nil
}

// enforceBundles makes bundles active and stores them on disk. It tries until ctx is done.
func (h *Host) enforceBundles(ctx context.Context, bundles []policy.AnyPolicyBundle) error {
	if h.disk != nil {
		copies, err := h.disk.Read()
		if err != nil {
			klog.ErrorS(err, "There are no copies of policy bundles in place of those that cannot be loaded")
		}
		h.copies.replaceCopies(copies)
		defer h.copies.replaceCopies(nil)
	}
	err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		err := h.syncBundles(ctx, bundles)
		if err != nil {
			notLoaded(ctx, err)
		}
		return err == nil, nil
	})
	if err == nil {
		h.library.KeepOn(h.disk)
	}
	return err
}

// syncBundles makes these bundles take part as their statuses say before anything is decided, and
// removes all others. A bundle whose revision cannot be read or does not compile is missing, unless
// there is a copy of it on disk.
func (h *Host) syncBundles(ctx context.Context, bundles []policy.AnyPolicyBundle) error {
	for _, key := range h.library.BundleKeys() {
		if !slices.ContainsFunc(bundles, func(b policy.AnyPolicyBundle) bool { return keyOf(b) == key }) {
			if err := h.library.RemoveBundle(ctx, key); err != nil {
				return err
			}
		}
	}
	var failed error
	for _, b := range bundles { // an error of one bundle does not stop the others
		me, err := h.SyncBundle(ctx, b)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("following policy bundle %s: %w", keyOf(b), err))
			continue
		}
		h.logNotEnforced(b, me)
	}
	return failed
}

// logNotEnforced logs a bundle that is not enforced as its status says.
func (h *Host) logNotEnforced(b policy.AnyPolicyBundle, me policy.PolicyReplica) {
	if me.Problem != "" {
		klog.ErrorS(nil, "A policy bundle is not enforced as it should be", "bundle", keyOf(b), "problem", me.Problem, "enforced", me.Revision)
	}
}

// RestoreFromDisk makes the bundles on disk decide, for a process that cannot ask the API
// server. It fails with ErrNothingOnDisk if there are none. The Host does not become ready by that.
func (h *Host) RestoreFromDisk(ctx context.Context) (bundles int, err error) {
	if h.disk == nil {
		return 0, ErrNothingOnDisk
	}
	return h.library.RestoreStored(ctx, h.disk)
}

// tryRestore makes the policies on disk decide, if there are any.
func (h *Host) tryRestore(ctx context.Context) {
	if h.disk == nil {
		return
	}
	n, err := h.RestoreFromDisk(ctx)
	if err != nil {
		klog.ErrorS(err, "The API server does not say which policies there are, and there are none on disk")
		return
	}
	klog.InfoS("The API server does not say which policies there are; those on disk decide", "bundles", n)
	h.setReady()
}
