// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// writeStatus writes the status that the leader computed, and records an event if the reason changed.
func (r *Reconciler) writeStatus(ctx context.Context, before, b policy.AnyPolicyBundle) error {
	keepTransitionTimes(before, b)
	if equality.Semantic.DeepEqual(before.GetStatus(), b.GetStatus()) {
		return nil
	}
	old, now := findCondition(before, policy.PolicyBundleReady), findCondition(b, policy.PolicyBundleReady)
	if err := r.Client.Status().Patch(ctx, asObject(b), client.MergeFrom(asObject(before))); err != nil {
		return fmt.Errorf("writing status of policy bundle %s: %w", keyOf(b), err)
	}
	if now != nil && (old == nil || old.Reason != now.Reason || old.Message != now.Message || old.ObservedGeneration != now.ObservedGeneration) {
		kind := corev1.EventTypeNormal
		if now.Status != "True" {
			kind = corev1.EventTypeWarning
		}
		r.Events.Event(b, kind, now.Reason, now.Message)
	}
	return nil
}

// keepTransitionTimes gives conditions whose status is as before the time that they had. A round that sets a condition twice, to
// another status in between, would move it.
func keepTransitionTimes(before, b policy.AnyPolicyBundle) {
	now := b.GetStatus().Conditions
	for i := range now {
		if was := findCondition(before, now[i].Type); was != nil && was.Status == now[i].Status {
			now[i].LastTransitionTime = was.LastTransitionTime
		}
	}
}

// writeReplica writes the entry of this replica, if it changed.
func (r *Reconciler) writeReplica(ctx context.Context, b policy.AnyPolicyBundle, me policy.PolicyReplica) error {
	for _, there := range b.GetStatus().Replicas {
		if there.Name == me.Name && equality.Semantic.DeepEqual(there, me) {
			return nil
		}
	}
	entry, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&me)
	if err != nil {
		return fmt.Errorf("encoding the entry of a replica: %w", err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"replicas": []any{entry}}}}
	u.SetGroupVersionKind(policy.KindOf(b))
	u.SetNamespace(b.GetNamespace())
	u.SetName(b.GetName())
	err = r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, client.FieldOwner("kruise-manager-"+me.Name))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("telling what this replica runs of policy bundle %s: %w", keyOf(b), err)
	}
	return nil
}

// pruneReplicas removes the entries of replicas that are gone. Replicas write their own entries, so
// the removal fails if one has written meanwhile.
func (r *Reconciler) pruneReplicas(ctx context.Context, b policy.AnyPolicyBundle) error {
	if r.Alive == nil || len(b.GetStatus().Replicas) == 0 {
		return nil
	}
	alive, err := r.Alive(ctx)
	if err != nil {
		return fmt.Errorf("listing the replicas of the manager: %w", err)
	}
	before, st := copyBundle(b), b.GetStatus()
	st.Replicas = slices.DeleteFunc(st.Replicas, func(p policy.PolicyReplica) bool { return !slices.Contains(alive, p.Name) })
	if len(st.Replicas) == len(before.GetStatus().Replicas) {
		return nil
	}
	err = r.Client.Status().Patch(ctx, asObject(b), client.MergeFromWithOptions(asObject(before), client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return r.readLive(ctx, b) // the next reconcile tries again
	}
	if err != nil {
		return fmt.Errorf("taking replicas that are gone out of policy bundle %s: %w", keyOf(b), err)
	}
	return nil
}

func asObject(b policy.AnyPolicyBundle) client.Object { return b.(client.Object) }

func copyBundle(b policy.AnyPolicyBundle) policy.AnyPolicyBundle {
	return b.DeepCopyObject().(policy.AnyPolicyBundle)
}
