// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/versions"
)

// claimSet has the claims of a set, as ResolveSpec found them.
type claimSet struct {
	named map[string]*corev1.PersistentVolumeClaim
	// growth has, by ordinal, how far the claims follow their templates.
	growth map[int]rollout.ClaimResize
}

// ResolveSpec implements rollout.KindWithNodeCounts: it finds the claims of the set.
func (k *Kind) ResolveSpec(ctx context.Context, r *rollout.Round, spec *rollout.Spec) error {
	found := &claimSet{}
	spec.Found = found
	if len(r.Workload.(*kruise.StatefulSet).Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	return k.findClaims(ctx, r, found)
}

// findClaims finds the claims whose name ends with the name of a pod of the set, whatever their template: the
// template may be that of an earlier revision.
func (k *Kind) findClaims(ctx context.Context, r *rollout.Round, found *claimSet) error {
	set := r.Workload.(*kruise.StatefulSet)
	list := &corev1.PersistentVolumeClaimList{}
	if err := r.CachedClient().List(ctx, list, client.InNamespace(set.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing claims: %w", err)
	}
	m := r.KindMemory().(*memory)
	found.named, found.growth = map[string]*corev1.PersistentVolumeClaim{}, map[int]rollout.ClaimResize{}
	ordinals := map[int]bool{}
	for i := range list.Items {
		if n, ok := claimOrdinal(set, list.Items[i].Name); ok {
			own := list.Items[i] // a copy, as a pointer would keep the claims of the whole namespace in memory
			found.named[own.Name] = m.newestClaim(&own)
			ordinals[n] = true
		}
	}
	maps.DeleteFunc(m.own, func(name string, _ *corev1.PersistentVolumeClaim) bool { return found.named[name] == nil })
	if !k.growsClaims(set) {
		return nil
	}
	for n := range ordinals {
		g, err := found.growthOf(ctx, r.CachedClient(), set, n)
		if err != nil {
			return err
		}
		found.growth[n] = g
	}
	return nil
}

// claimOrdinal returns the ordinal of a claim, if its name ends with the name of a pod of the set.
func claimOrdinal(set *kruise.StatefulSet, name string) (int, bool) {
	n, ok := facts.PodOrdinal(name)
	suffix := "-" + podName(set, n)
	return n, ok && len(name) > len(suffix) && strings.HasSuffix(name, suffix)
}

// rememberClaim keeps a claim as the controller wrote it. While the cache does not show it yet, the update of the pod would
// seem not to have begun.
func (m *memory) rememberClaim(c *corev1.PersistentVolumeClaim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.own == nil {
		m.own = map[string]*corev1.PersistentVolumeClaim{}
	}
	m.own[c.Name] = c
}

// newestClaim returns a claim as the controller last wrote it, if the cache shows an older one.
func (m *memory) newestClaim(cached *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	own := m.own[cached.Name]
	if own == nil {
		return cached
	}
	if versions.IsNewer(own, cached) {
		return own
	}
	delete(m.own, cached.Name)
	return cached
}

// setsResizingClaim names the set that resizes a claim, so that a change of the claim is an event for that set.
func setsResizingClaim(_ context.Context, o client.Object) ([]reconcile.Request, error) {
	if name := o.GetAnnotations()[kruise.OwnedByAdvancedStatefulSetKey]; name != "" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}, nil
	}
	return nil, nil
}
