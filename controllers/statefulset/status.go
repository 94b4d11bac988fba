// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// ReportStatus implements rollout.Kind: it writes the status if it changed, and records events of
// the changes.
func (k *Kind) ReportStatus(ctx context.Context, r *rollout.Round, f *rollout.Facts, res rollout.Result) error {
	s := k.newScaler(r, f)
	status := s.computeStatus()
	status.Conditions = r.BuildConditions(f, res, s.set.Status.Conditions, func(phase string) kruise.WorkloadConditionType {
		if phase == rollout.PhaseScale {
			return kruise.StatefulSetFailedCreatePod
		}
		return kruise.StatefulSetFailedUpdatePod
	})
	status.Conditions = s.tellDiffering(status.Conditions)
	kstatus.SetConditions(&status, kinds.JudgeRollout(kinds.ViewStatefulSet(s.set, &status)), s.set.Generation, f.Now)
	return r.WriteStatus(ctx, &status)
}

// TruncateHistory implements rollout.Kind.
func (k *Kind) TruncateHistory(ctx context.Context, r *rollout.Round, f *rollout.Facts, failed bool) error {
	limit := int(ptr.Deref(r.Workload.(*kruise.StatefulSet).Spec.RevisionHistoryLimit, 10))
	return r.TruncateHistory(ctx, f, f.Templates.(*rollout.PodTemplates), limit, failed)
}

// computeStatus counts the pods (ASTS-18). Terminating pods count as replicas, but
// not for a revision.
func (s *scaler) computeStatus() kruise.StatefulSetStatus {
	f := s.f
	out := kruise.StatefulSetStatus{
		ObservedGeneration: s.set.Generation, CurrentRevision: f.Templates.CurrentRevision(), UpdateRevision: f.Templates.UpdateRevision(),
		CollisionCount: ptr.To(s.t.History.Collisions), LabelSelector: f.Selector.String(), VolumeClaims: s.volumeClaims(),
	}
	for _, p := range f.Pods {
		available := f.IsAvailable(p)
		countIf(&out.Replicas, true)
		countIf(&out.ReadyReplicas, p.Ready)
		countIf(&out.AvailableReplicas, available)
		countIf(&out.CurrentReplicas, revision.SameHash(f.Templates.CurrentRevision(), p.Labels[rollout.RevisionLabel]))
		updated := f.Templates.HasRevision(p.Pod, f.Templates.UpdateRevision()) // whatever the state of its claims
		countIf(&out.UpdatedReplicas, updated)
		countIf(&out.UpdatedReadyReplicas, updated && p.Ready)
		countIf(&out.UpdatedAvailableReplicas, updated && available)
	}
	for _, p := range f.Gone {
		countIf(&out.Replicas, true)
		countIf(&out.ReadyReplicas, p.Status.Phase == corev1.PodRunning && availability.HasReadyCondition(p))
	}
	if f.Strategy.Type != rollout.OnDelete && out.UpdatedReplicas == out.Replicas && out.ReadyReplicas == out.Replicas && f.Difference.Missing.Total == 0 { // ASTS-15
		out.CurrentRevision, out.CurrentReplicas = out.UpdateRevision, out.UpdatedReplicas
	}
	return out
}

func countIf[N int | int32](n *N, yes bool) {
	if yes {
		*n++
	}
}

// volumeClaims counts for each template the claims that are at least as large (ASTS-14).
func (s *scaler) volumeClaims() (out []kruise.VolumeClaimStatus) {
	for i := range s.set.Spec.VolumeClaimTemplates {
		t := &s.set.Spec.VolumeClaimTemplates[i]
		v := kruise.VolumeClaimStatus{VolumeClaimName: t.Name}
		for _, n := range s.wanted {
			c := s.claims.named[claimName(s.set, t.Name, n)]
			if s.active[n] == nil || c == nil || !isCompatible(c, t) {
				continue
			}
			v.CompatibleReplicas++
			countIf(&v.CompatibleReadyReplicas, hasRequested(c))
		}
		out = append(out, v)
	}
	return out
}

// isCompatible reports whether a claim fulfils a template and requests at least its size.
func isCompatible(c, template *corev1.PersistentVolumeClaim) bool {
	return immutableDifferences(points.ClaimChange{}, c, template) == nil &&
		c.Spec.Resources.Requests.Storage().Cmp(*template.Spec.Resources.Requests.Storage()) >= 0
}

// hasRequested reports whether a claim has at least the size that it requests.
func hasRequested(c *corev1.PersistentVolumeClaim) bool {
	return c.Status.Capacity.Storage().Cmp(*c.Spec.Resources.Requests.Storage()) >= 0
}
