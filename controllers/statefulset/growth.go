// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// growsClaims reports whether claims follow their templates while pods are updated (ASTS-14).
func (k *Kind) growsClaims(set *kruise.StatefulSet) bool {
	return k.Gates.AutoResizePVC && set.Spec.VolumeClaimUpdateStrategy.Type == kruise.OnPodRollingUpdateVolumeClaimUpdateStrategyType
}

// ClaimGrowth implements rollout.KindWithClaimResize.
func (k *Kind) ClaimGrowth(f *rollout.Facts, pod *corev1.Pod) rollout.ClaimResize {
	if c, ok := f.Found.(*claimSet); ok {
		if n, ok := ordinalOf(f.Workload.(*kruise.StatefulSet), pod.Name); ok {
			return c.growth[n]
		}
	}
	return rollout.ClaimResize{}
}

// growthOf returns how far the claims of an ordinal follow their templates. It leaves out claims that terminate
// or are not bound, since Kubernetes resizes neither.
func (c *claimSet) growthOf(ctx context.Context, r client.Reader, set *kruise.StatefulSet, ordinal int) (g rollout.ClaimResize, err error) {
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		claim := c.named[claimName(set, template.Name, ordinal)]
		if !isBound(claim) {
			continue
		}
		differ, err := claimDifferences(ctx, r, set, claim, template)
		if err != nil {
			return rollout.ClaimResize{}, err
		}
		g.Differ = append(g.Differ, differ...)
		if hasGrown(claim, template) {
			continue
		}
		if g.Growing == "" {
			g.Growing = fmt.Sprintf("Claim %s grows from %s to %s", claim.Name, claim.Status.Capacity.Storage(), claim.Spec.Resources.Requests.Storage())
		}
		g.Pending = g.Pending || !hasCondition(claim, corev1.PersistentVolumeClaimFileSystemResizePending)
		if g.Trouble == "" {
			g.Trouble = resizeError(claim)
		}
	}
	return g, nil
}

func isBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim != nil && claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimBound
}

// claimDifferences returns what a claim lacks to fulfil its template. A larger claim
// fulfils it (ASTS-14).
func claimDifferences(ctx context.Context, r client.Reader, set *kruise.StatefulSet, claim, template *corev1.PersistentVolumeClaim) ([]points.ClaimChange, error) {
	change := points.ClaimChange{Claim: claim.Name, Template: template.Name, Class: ptr.Deref(claim.Spec.StorageClassName, "")}
	out := immutableDifferences(change, claim, template)
	if len(out) > 0 || !needsResize(set, claim, template) {
		return out, nil
	}
	change.What = points.ClaimSize
	change.From, change.To = claim.Spec.Resources.Requests.Storage().String(), template.Spec.Resources.Requests.Storage().String()
	var err error
	change.Obstacle, err = growthObstacle(ctx, r, change.Class)
	return []points.ClaimChange{change}, err
}

// immutableDifferences are the differences in fields that Kubernetes never changes.
func immutableDifferences(change points.ClaimChange, claim, template *corev1.PersistentVolumeClaim) (out []points.ClaimChange) {
	change.Obstacle = points.ObstacleImmutable
	if a, b := claim.Spec.StorageClassName, template.Spec.StorageClassName; a != nil && b != nil && *a != *b {
		change.What, change.From, change.To = points.ClaimClass, *a, *b
		out = append(out, change)
	}
	if a, b := claim.Spec.AccessModes, template.Spec.AccessModes; !slices.Equal(a, b) {
		change.What, change.From, change.To = points.ClaimAccessModes, joinAccessModes(a), joinAccessModes(b)
		out = append(out, change)
	}
	return out
}

func joinAccessModes(all []corev1.PersistentVolumeAccessMode) string {
	out := make([]string, len(all))
	for i, m := range all {
		out[i] = string(m)
	}
	return strings.Join(out, ",")
}

// needsResize reports whether a claim is to request another size. It is to request more if it requests too little. It is to
// request less if the controller requested more before and that growth is not complete: the API server accepts a lower request
// as long as it is above the capacity of the claim.
func needsResize(set *kruise.StatefulSet, claim, template *corev1.PersistentVolumeClaim) bool {
	asks, wants, has := claim.Spec.Resources.Requests.Storage(), template.Spec.Resources.Requests.Storage(), claim.Status.Capacity.Storage()
	if asks.Cmp(*wants) < 0 {
		return true
	}
	return asks.Cmp(*wants) > 0 && wants.Cmp(*has) > 0 && claim.Annotations[kruise.OwnedByAdvancedStatefulSetKey] == set.Name
}

// growthObstacle returns why a claim with a storage class cannot grow, "" if it can.
func growthObstacle(ctx context.Context, r client.Reader, name string) (string, error) {
	if name == "" {
		return points.ObstacleNoClass, nil
	}
	class := &storagev1.StorageClass{}
	err := r.Get(ctx, types.NamespacedName{Name: name}, class)
	switch {
	case apierrors.IsNotFound(err):
		return points.ObstacleNoClass, nil
	case err != nil:
		return "", fmt.Errorf("reading storage class %s: %w", name, err)
	case !ptr.Deref(class.AllowVolumeExpansion, false):
		return points.ObstacleClass, nil
	}
	return "", nil
}

// hasGrown reports whether a claim has the size that it requests, or the size in its template. If growth
// fails and is taken back, the claim keeps a request for more than it will ever have.
func hasGrown(claim, template *corev1.PersistentVolumeClaim) bool {
	has := claim.Status.Capacity.Storage()
	return hasRequested(claim) || immutableDifferences(points.ClaimChange{}, claim, template) == nil && has.Cmp(*template.Spec.Resources.Requests.Storage()) >= 0
}

func hasCondition(claim *corev1.PersistentVolumeClaim, t corev1.PersistentVolumeClaimConditionType) bool {
	return slices.ContainsFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

// resizeError returns why a claim does not grow, as the resizer reports it.
func resizeError(claim *corev1.PersistentVolumeClaim) string {
	for _, c := range claim.Status.Conditions {
		if (c.Type == corev1.PersistentVolumeClaimControllerResizeError || c.Type == corev1.PersistentVolumeClaimNodeResizeError) && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("%s: %s", c.Type, c.Message)
		}
	}
	switch s := claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]; s {
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return string(s)
	}
	return ""
}
