// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// claimsAgain is the time after which pods that have no node yet are checked again: no event follows when a client deletes their claims.
const claimsAgain = 30 * time.Second

// repairClaims creates claims again that a client has deleted, for pods that have no node yet, as a StatefulSet does: without them
// such a pod would wait indefinitely. The claims of pods on a node are kept by the storage protection of Kubernetes. A claim that
// still terminates is an error, which the condition FailedScale reports.
func (s *scaler) repairClaims(ctx context.Context) error {
	there := map[string]bool{}
	for _, c := range s.memory.claims {
		there[c.Name] = true
	}
	var acts []func() error
	for _, p := range s.f.Pods {
		id := p.Labels[kruise.CloneSetInstanceIDKey]
		if id == "" || p.Status.Phase != corev1.PodPending || p.Spec.NodeName != "" || !usesClaims(p.Pod) {
			continue
		}
		s.r.RequeueAfter(claimsAgain)
		// The cache may not show claims that have just been created. No claim counts as missing until the scheduler has looked for it.
		scheduled := inplace.FindCondition(p.Pod, corev1.PodScheduled)
		rev := s.t.RevisionOf(p.Pod)
		if rev == nil || scheduled == nil || scheduled.Status != corev1.ConditionFalse {
			continue
		}
		missing := slices.DeleteFunc(slices.Clone(s.claimTemplates(rev)), func(t corev1.PersistentVolumeClaim) bool {
			name := claimName(s.set, t.Name, id)
			return there[name] || !mountsClaim(p.Pod, name)
		})
		if len(missing) == 0 {
			continue
		}
		acts = append(acts, func() error {
			if err := s.createClaims(ctx, p.Pod, id, missing); err != nil {
				return &rollout.CreateError{Err: err} // as with pods that cannot be created, the others are updated
			}
			return nil
		})
	}
	return s.r.RunParallel(acts)
}

// usesClaims reports whether a pod has volumes of claims.
func usesClaims(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
}

// mountsClaim reports whether a pod has a volume of a claim.
func mountsClaim(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}
