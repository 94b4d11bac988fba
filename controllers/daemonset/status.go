// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
)

// ReportStatus implements rollout.Kind: it writes the status if it changed, and records events of the
// changes.
func (k *Kind) ReportStatus(ctx context.Context, r *rollout.Round, f *rollout.Facts, res rollout.Result) error {
	s := k.newScaler(r, f)
	status := s.computeStatus(res.Err == nil)
	status.Conditions = r.BuildConditions(f, res, s.set.Status.Conditions, func(phase string) kruise.WorkloadConditionType {
		return kruise.WorkloadConditionType(phase)
	})
	s.leaveUnnamed(&status)
	view := kinds.ViewDaemonSet(s.set, &status)
	if ru := s.set.Spec.UpdateStrategy.RollingUpdate; ru != nil && ru.Selector != nil {
		view.Target = min(view.Target, view.Updated+f.CountCandidates())
	}
	kstatus.SetConditions(&status, kinds.JudgeRollout(view), s.set.Generation, f.Now)
	s.tellWaiting(res)
	return r.WriteStatus(ctx, &status)
}

// TruncateHistory implements rollout.Kind.
func (k *Kind) TruncateHistory(ctx context.Context, r *rollout.Round, f *rollout.Facts, failed bool) error {
	limit := int(ptr.Deref(r.Workload.(*kruise.DaemonSet).Spec.RevisionHistoryLimit, 10))
	return r.TruncateHistory(ctx, f, f.Templates.(templates).PodTemplates, limit, failed)
}

// computeStatus counts nodes (ADS-13): each node that should run a pod counts by its oldest pod.
func (s *scaler) computeStatus(whole bool) kruise.DaemonSetStatus {
	out := kruise.DaemonSetStatus{
		ObservedGeneration: s.set.Status.ObservedGeneration, DesiredNumberScheduled: int32(s.f.Replicas),
		CurrentRevision: s.currentAfter().Name, UpdateRevision: revision.ShortHash(s.t.UpdateRevision()), CollisionCount: s.set.Status.CollisionCount,
	}
	if whole {
		out.ObservedGeneration = s.set.Generation
	}
	if n := s.t.History.Collisions; n != 0 || out.CollisionCount != nil {
		out.CollisionCount = &n
	}
	for _, at := range s.sites {
		pods := slices.Clone(at.gone)
		for _, p := range at.pods {
			pods = append(pods, p.Pod)
		}
		switch {
		case len(pods) == 0 || at.node == nil:
		case !at.shouldRun():
			out.NumberMisscheduled++
		default:
			out.CurrentNumberScheduled++
			oldest := slices.MinFunc(pods, compareAge)
			ready, available := s.podReadiness(at, oldest)
			incrementInt32If(&out.NumberReady, ready)
			incrementInt32If(&out.NumberAvailable, available)
			incrementInt32If(&out.UpdatedNumberScheduled, s.t.HasRevision(oldest, s.t.UpdateRevision()))
		}
	}
	out.NumberUnavailable = out.DesiredNumberScheduled - out.NumberAvailable
	return out
}

// podReadiness reports whether a pod of a node is ready and available. A terminating pod may be both.
func (s *scaler) podReadiness(at *site, pod *corev1.Pod) (ready, available bool) {
	for _, p := range at.pods {
		if p.Pod == pod {
			return p.Ready, s.f.IsAvailable(p)
		}
	}
	c := inplace.FindCondition(pod, corev1.PodReady)
	ready = c != nil && c.Status == corev1.ConditionTrue
	return ready, ready && c.LastTransitionTime.Add(s.f.MinReady).Before(s.f.Now.Add(time.Nanosecond))
}

func incrementInt32If(n *int32, yes bool) {
	if yes {
		*n++
	}
}

// tellWaiting records an event that pods wait because of maxUnavailable. OpenKruise repeats
// it in each reconcile; here an event reports it once for each pair of numbers of a revision.
func (s *scaler) tellWaiting(res rollout.Result) {
	waits := func(skip selection.Skip) bool { return skip.Hold.Reason == selection.ReasonMaxUnavailable }
	if s.f.Strategy.MaxSurge > 0 || !slices.ContainsFunc(res.Skipped, waits) {
		return
	}
	if now := s.t.UpdateRevision(); s.memory.toldFor != now {
		s.memory.toldFor, s.memory.told = now, map[string]bool{}
	}
	message := fmt.Sprintf("%s/%s number of unavailable DaemonSet pods: %d, is equal to or exceeds allowed maximum: %d",
		s.set.Namespace, s.set.Name, max(s.f.Difference.Unavailable.Total, s.f.Strategy.MaxUnavailable), s.f.Strategy.MaxUnavailable)
	if !s.memory.told[message] {
		s.memory.told[message] = true
		s.r.RecordWarning(kruise.MaxUnavailableReachedReason, message)
	}
}
