// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// quietFor is how long no pod must lack the containers before the recreation counts as complete. After that, pods that lack them are
// evicted as if for the first time.
const quietFor = 10 * time.Minute

// asksToRecreate reports whether a SidecarSet requests that pods which lack its containers are evicted.
func asksToRecreate(set *kruise.SidecarSet) bool {
	return set.Annotations[kruise.SidecarSetRecreateMissedKey] == "true"
}

// reportRecreation keeps the condition MissedRecreated. It is written, with the time, before the first pod is evicted. If a pod
// that was created after that lacks the containers again, evictions do not help. Then no more pods are evicted
// until the SidecarSet changes, or the annotation is removed.
func (k *Kind) reportRecreation(r *rollout.Round, m *memory, f *rollout.Facts, set *kruise.SidecarSet, s *kruise.SidecarSetStatus) {
	found, ok := f.Found.(*findings)
	if !ok {
		return
	}
	was := meta.FindStatusCondition(s.Conditions, kruise.SidecarSetMissedRecreated)
	if !asksToRecreate(set) || was != nil && was.ObservedGeneration != set.Generation {
		condition.RemoveConditions(s, kruise.SidecarSetMissedRecreated)
		was = nil
	}
	if !asksToRecreate(set) {
		return
	}
	if len(found.pods) > 0 {
		m.quiet = time.Time{}
	}
	switch {
	case was == nil && len(found.pods) > 0:
		condition.SetCondition(s, condition.Condition{
			Type: kruise.SidecarSetMissedRecreated, Status: metav1.ConditionTrue, Reason: kruise.SidecarSetRecreatingReason, Message: "Pods that lack the containers are evicted, one at a time.",
		}, set.Generation, metav1.NewTime(r.Now))
	case was == nil || was.Status == metav1.ConditionFalse:
	case len(found.pods) == 0:
		if m.quiet.IsZero() {
			m.quiet = r.Now
		}
		if left := quietFor - r.Now.Sub(m.quiet); left > 0 {
			r.RequeueAfter(left)
			return
		}
		condition.RemoveConditions(s, kruise.SidecarSetMissedRecreated)
	default:
		for _, l := range found.pods {
			if !l.pod.CreationTimestamp.After(was.LastTransitionTime.Time) {
				continue
			}
			message := fmt.Sprintf("Pod %s/%s was created after pods were evicted and lacks the containers again, so no more are evicted until the SidecarSet is changed or its annotation %s is taken off.",
				l.pod.Namespace, l.pod.Name, kruise.SidecarSetRecreateMissedKey)
			condition.SetCondition(s, condition.Condition{
				Type: kruise.SidecarSetMissedRecreated, Status: metav1.ConditionFalse, Reason: kruise.SidecarSetRecreatedInVainReason, Message: message,
			}, set.Generation, metav1.NewTime(r.Now))
			r.RecordWarning(kruise.SidecarSetRecreatedInVainReason, message)
			return
		}
	}
}

// mayRecreate returns the pods that nothing holds. It records an event for each new reason.
func (k *Kind) mayRecreate(ctx context.Context, r *rollout.Round, f *rollout.Facts, m *memory, found *findings) map[types.UID]bool {
	var pods []*corev1.Pod
	for _, l := range found.pods {
		pods = append(pods, l.pod)
	}
	out := map[types.UID]bool{}
	if len(pods) == 0 {
		return out
	}
	a := r.MayDisrupt(ctx, f, pods)
	for _, pod := range a.Allowed {
		out[pod.UID] = true
	}
	reason := ""
	if h := a.TopHold(); h != nil {
		reason = h.Reason
		if m.recreationHeld != reason {
			r.RecordWarning(kruise.SidecarSetRecreationHeldReason, fmt.Sprintf("Pods that lack the containers are not evicted: %s: %s (rule %s)", h.Reason, h.Message, h.Rule))
		}
		r.RequeueAfter(repairEvery)
	}
	m.recreationHeld = reason
	return out
}
