// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// GrowClaims implements rollout.KindWithClaimResize.
func (k *Kind) GrowClaims(ctx context.Context, r *rollout.Round, f *rollout.Facts, p *facts.Pod) error {
	s := k.newScaler(r, f)
	ordinal, _ := ordinalOf(s.set, p.Name)
	return s.growClaims(ctx, ordinal)
}

// growClaims sets the requests of the claims of an ordinal to those of their templates, if nothing else
// differs.
func (s *scaler) growClaims(ctx context.Context, ordinal int) error {
	for _, differ := range s.claims.growth[ordinal].Differ {
		if differ.What != points.ClaimSize || differ.Obstacle != "" {
			continue
		}
		for i := range s.set.Spec.VolumeClaimTemplates {
			if t := &s.set.Spec.VolumeClaimTemplates[i]; t.Name == differ.Template {
				if err := s.growClaim(ctx, s.claims.named[differ.Claim], t, ordinal); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *scaler) growClaim(ctx context.Context, claim, template *corev1.PersistentVolumeClaim, ordinal int) error {
	next := claim.DeepCopy()
	next.Spec.Resources.Requests[corev1.ResourceStorage] = template.Spec.Resources.Requests[corev1.ResourceStorage]
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[kruise.OwnedByAdvancedStatefulSetKey] = s.set.Name
	what := fmt.Sprintf("resize Claim %s Pod %s in StatefulSet %s", claim.Name, podName(s.set, ordinal), s.set.Name)
	if err := s.r.CachedClient().Patch(ctx, next, client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{})); err != nil {
		if !rollout.IsConflict(err) {
			s.r.RecordWarning(kruise.FailedResizeReason, what+" failed error: "+rollout.OneLine(err.Error()))
		}
		return fmt.Errorf("growing claim %s: %w", claim.Name, err)
	}
	s.memory.rememberClaim(next)
	s.r.RecordNormal(kruise.SuccessfulResizeReason, fmt.Sprintf("%s success: from %s to %s", what, claim.Spec.Resources.Requests.Storage(), next.Spec.Resources.Requests.Storage()))
	return nil
}
