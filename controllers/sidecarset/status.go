// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/annotation"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// ReportStatus implements rollout.Kind.
func (k *Kind) ReportStatus(ctx context.Context, r *rollout.Round, f *rollout.Facts, res rollout.Result) error {
	m, set, err := loadMemory(r)
	if err != nil {
		return err
	}
	t, ok := f.Templates.(*templates)
	if !ok {
		return fmt.Errorf("reporting: the templates are a %T", f.Templates)
	}
	c := f.CountPods()
	status := kruise.SidecarSetStatus{
		ObservedGeneration: set.Generation, MatchedPods: int32(c.Total), UpdatedPods: int32(c.Updated),
		ReadyPods: int32(c.Available), UpdatedReadyPods: int32(c.UpdatedAvail),
		LatestRevision: t.UpdateRevision(), CollisionCount: ptr.To(t.History.Collisions), Conditions: slices.Clone(set.Status.Conditions),
	}
	condition.RemoveConditions(&status, failure.ConditionType)
	reportFailures(f, res, &status)
	reportHold(r, res, &status)
	reportRevisionGone(r, t, set, &status)
	reportMissed(r, f, &status)
	k.reportRecreation(r, m, f, set, &status)
	k.reportNotUpgradable(r, m, f, t)
	view := kinds.ViewSidecarSet(set, &status)
	if !view.KeepsOld {
		view.Target = min(view.Target, view.Updated+countUpdatable(m, f, set))
	}
	view.Available = view.Wanted // pods that are not updated may fail for reasons of their own
	kstatus.SetConditions(&status, kinds.JudgeRollout(view), set.Generation, f.Now)
	if err := r.WriteStatus(ctx, &status); err != nil {
		return err
	}
	if res.Err != nil {
		return nil
	}
	return k.evictUninjectedPod(ctx, r, f, res)
}

// reportFailures keeps the condition FailedUpdate while updates fail.
func reportFailures(f *rollout.Facts, res rollout.Result, s *kruise.SidecarSetStatus) {
	if failures := res.FailedPhases(); len(failures) > 0 {
		condition.SetCondition(s, condition.Condition{
			Type: rollout.PhaseUpdate, Status: metav1.ConditionTrue, Reason: rollout.PhaseUpdate, Message: failures[0].Error(),
		}, s.ObservedGeneration, metav1.NewTime(f.Now))
	} else if res.PhaseSucceeded(rollout.PhaseUpdate) {
		condition.RemoveConditions(s, rollout.PhaseUpdate)
	}
}

// reportHold keeps the condition UpdateHeld, and records each new reason as one event.
func reportHold(r *rollout.Round, res rollout.Result, s *kruise.SidecarSetStatus) {
	old := meta.FindStatusCondition(s.Conditions, kruise.UpdateHeld)
	c := res.HoldCondition(old != nil && old.Status == metav1.ConditionTrue)
	if c == nil {
		return
	}
	if condition.SetCondition(s, *c, s.ObservedGeneration, metav1.NewTime(r.Now)).IsNews() {
		res.ReportHold(r, *c)
	}
}

// reportNotUpgradable records once for each revision that pods stay as they are because more than images changed,
// or because the container that a hot upgrade would start has ended for good.
func (k *Kind) reportNotUpgradable(r *rollout.Round, m *memory, f *rollout.Facts, t *templates) {
	if m.told == t.UpdateRevision() || f.Strategy.Type != string(kruise.RollingUpdateSidecarSetStrategyType) {
		return
	}
	n, set := 0, r.Workload.(*kruise.SidecarSet)
	for _, p := range f.Pods {
		if !p.Facts.Updated && isSelected(m, p.Pod) && (!isUpgradable(m, f.Subject.Name, p.Pod) || hasEndedTarget(set, p.Pod)) {
			n++
		}
	}
	if n > 0 {
		m.told = t.UpdateRevision()
		r.RecordNormal(kruise.SidecarSetNotUpgradablePodsReason,
			fmt.Sprintf("SidecarSet in-place update detected %d not upgradable pod(s) in this round, will skip them", n))
	}
}

// countUpdatable counts the pods of older revisions that the SidecarSet updates. Others keep their containers until they are recreated.
func countUpdatable(m *memory, f *rollout.Facts, set *kruise.SidecarSet) (n int) {
	for _, p := range f.Pods {
		if !p.Facts.Updated && isSelected(m, p.Pod) && isUpgradable(m, set.Name, p.Pod) && !hasEndedTarget(set, p.Pod) {
			n++
		}
	}
	return n
}

// RefreshPod implements rollout.KindWithLabelRefresh: the condition of a pod reports whether its SidecarSets can update it in place (SS-14).
func (k *Kind) RefreshPod(r *rollout.Round, p *facts.Pod) func(context.Context) (*corev1.Pod, error) {
	m, set, err := loadMemory(r)
	if err != nil || set.Spec.UpdateStrategy.Type == kruise.NotUpdateSidecarSetStrategyType {
		return nil
	}
	can := isUpgradable(m, set.Name, p.Pod)
	said, known := readVerdicts(p.Pod)[set.Name]
	if can && (said || !known && !hasUpdated(set.Name, p.Pod)) || !can && (known && !said || !isSelected(m, p.Pod)) {
		return nil
	}
	return func(ctx context.Context) (*corev1.Pod, error) { return writeVerdict(ctx, r, p.Pod, set.Name, can) }
}

// hasUpdated reports whether a pod records an update by a SidecarSet. After one, its condition reports that it is upgradable.
func hasUpdated(set string, pod *corev1.Pod) bool {
	states, err := statesOf(pod)
	return err == nil && states[set] != nil
}

// ensureVerdict writes into the condition of a pod whether a SidecarSet can update it, unless the condition reports that already.
func (k *Kind) ensureVerdict(ctx context.Context, r *rollout.Round, pod *corev1.Pod, set string, can bool) error {
	if said, known := readVerdicts(pod)[set]; known && said == can {
		return nil
	}
	written, err := writeVerdict(ctx, r, pod, set, can)
	r.RecordWrite(ctx, pod, written, err)
	return err
}

// readVerdicts returns what the condition of a pod reports of its SidecarSets.
func readVerdicts(pod *corev1.Pod) map[string]bool {
	c := inplace.FindCondition(pod, kruise.SidecarSetUpgradableCondition)
	if c == nil {
		return nil
	}
	out, err := annotation.Decode[map[string]bool](string(kruise.SidecarSetUpgradableCondition), c.Message)
	if err != nil {
		return nil
	}
	return out
}

func writeVerdict(ctx context.Context, r *rollout.Round, was *corev1.Pod, set string, can bool) (*corev1.Pod, error) {
	all := map[string]bool{set: can}
	for name, said := range readVerdicts(was) {
		if name != set {
			all[name] = said
		}
	}
	message, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("writing the condition %s: %w", kruise.SidecarSetUpgradableCondition, err)
	}
	next := corev1.PodCondition{
		Type: kruise.SidecarSetUpgradableCondition, Status: corev1.ConditionTrue, Reason: kruise.SidecarSetAllUpgradableReason, Message: string(message), LastTransitionTime: metav1.NewTime(r.Now),
	}
	for _, said := range all {
		if !said {
			next.Status, next.Reason = corev1.ConditionFalse, kruise.SidecarSetUpdateImmutableFieldReason
		}
	}
	pod := was.DeepCopy()
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == next.Type })
	if at < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, next)
	} else {
		if pod.Status.Conditions[at].Status == next.Status {
			next.LastTransitionTime = pod.Status.Conditions[at].LastTransitionTime
		}
		pod.Status.Conditions[at] = next
	}
	if err := r.CachedClient().Status().Patch(ctx, pod, client.StrategicMergeFrom(was, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("writing the condition %s of pod %s/%s: %w", kruise.SidecarSetUpgradableCondition, was.Namespace, was.Name, err)
	}
	return pod, nil
}
