// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"fmt"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine/decision"
)

// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create

// mostNamed is how many pods a message names.
const mostNamed = 3

// explainReason returns a sentence that says why a pod lacks containers.
func (l uninjectedPod) explainReason(set string) string {
	if l.reason == ReasonNoAnswer {
		return fmt.Sprintf("No webhook answered when the pod was created, and the failure policy let it start without the containers of SidecarSet %s.", set)
	}
	return fmt.Sprintf("SidecarSet %s was changed after the pod was created.", set)
}

// reportMissed keeps the condition InjectionMissed while pods lack the containers, and removes it otherwise.
func reportMissed(r *rollout.Round, f *rollout.Facts, s *kruise.SidecarSetStatus) {
	found, ok := f.Found.(*findings)
	if !ok {
		return
	}
	reportConflict(r, found, s)
	if len(found.pods) == 0 {
		condition.RemoveConditions(s, kruise.SidecarSetInjectionMissed)
		return
	}
	reason, names := ReasonChanged, []string{}
	for _, l := range found.pods {
		if l.reason == ReasonNoAnswer {
			reason = ReasonNoAnswer
		}
		if len(names) < mostNamed {
			names = append(names, fmt.Sprintf("%s/%s (%s)", l.pod.Namespace, l.pod.Name, l.reason))
		}
	}
	message := fmt.Sprintf("%d pods lack the containers that they should have been given: %s", len(found.pods), strings.Join(names, ", "))
	if n := len(found.pods) - len(names); n > 0 {
		message += fmt.Sprintf(" and %d more", n)
	}
	message += "."
	if found.older > 0 {
		message += fmt.Sprintf(" Besides, %d pods are older than the SidecarSet.", found.older)
	}
	old := meta.FindStatusCondition(s.Conditions, kruise.SidecarSetInjectionMissed)
	if old == nil || old.Reason != reason {
		r.RecordWarning(kruise.SidecarSetInjectionMissed, message)
	}
	condition.SetCondition(s, condition.Condition{
		Type: kruise.SidecarSetInjectionMissed, Status: metav1.ConditionTrue, Reason: reason, Message: message,
	}, s.ObservedGeneration, metav1.NewTime(r.Now))
}

// reportConflict keeps the condition Conflict while pods lack the containers because of another SidecarSet. Admission refuses a SidecarSet that
// conflicts with another, but not two that are created at once, and not all conflicts by namespace selectors and rules.
func reportConflict(r *rollout.Round, found *findings, s *kruise.SidecarSetStatus) {
	if found.taken == 0 {
		condition.RemoveConditions(s, kruise.SidecarSetConflict)
		return
	}
	message := fmt.Sprintf("%d pods have the containers of another SidecarSet in place of these, such as: %s", found.taken, found.conflict)
	if meta.FindStatusCondition(s.Conditions, kruise.SidecarSetConflict) == nil {
		r.RecordWarning(kruise.SidecarSetConflict, message)
	}
	condition.SetCondition(s, condition.Condition{
		Type: kruise.SidecarSetConflict, Status: metav1.ConditionTrue, Reason: kruise.SidecarSetContainerNameTaken, Message: message,
	}, s.ObservedGeneration, metav1.NewTime(r.Now))
}

// ExplainMissing implements rollout.KindWithMissingPods.
func (k *Kind) ExplainMissing(f *rollout.Facts, namespace, name string) (explain.Answer, bool) {
	found, ok := f.Found.(*findings)
	if !ok {
		return explain.Answer{}, false
	}
	for _, l := range found.pods {
		if l.pod.Namespace == namespace && l.pod.Name == name {
			return explain.Answer{
				Subject: decision.Subject{Kind: "Pod", Namespace: namespace, Name: name, UID: string(l.pod.UID)},
				Verdict: explain.Lacking, Reason: l.reason, Rule: l.given.Rule, Message: l.explainReason(f.Subject.Name) + " A new pod would be given them: " + l.given.Message,
			}, true
		}
	}
	return explain.Answer{}, false
}

// repairEvery is the time between two evictions for one SidecarSet. It gives the owner of the pod time to create another one.
const repairEvery = 10 * time.Second

// mostTried is how many evictions a round tries.
const mostTried = 5

// evictUninjectedPod evicts one pod that lacks the containers, if the SidecarSet requests that and no policy holds its update. The eviction API
// enforces budgets. A pod that no controller owns would not be created again, so it stays.
func (k *Kind) evictUninjectedPod(ctx context.Context, r *rollout.Round, f *rollout.Facts, res rollout.Result) error {
	found, ok := f.Found.(*findings)
	if !ok || f.Workload.GetAnnotations()[kruise.SidecarSetRecreateMissedKey] != "true" || res.TopHold() != nil {
		return nil
	}
	m, set, err := loadMemory(r)
	if err != nil {
		return err
	}
	// The condition is written before the first eviction.
	if c := meta.FindStatusCondition(set.Status.Conditions, kruise.SidecarSetMissedRecreated); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != set.Generation {
		return nil
	}
	if wait := repairEvery - r.Now.Sub(m.evicted); wait > 0 {
		r.RequeueAfter(wait)
		return nil
	}
	allowed := k.mayRecreate(ctx, r, f, m, found)
	tried := 0
	for _, l := range found.pods {
		if !allowed[l.pod.UID] {
			continue
		}
		if metav1.GetControllerOfNoCopy(l.pod) == nil {
			continue
		}
		if tried++; tried > mostTried {
			return nil
		}
		m.evicted = r.Now
		r.RequeueAfter(repairEvery)
		err := r.CachedClient().SubResource("eviction").Create(ctx, l.pod.DeepCopy(), &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: l.pod.Namespace, Name: l.pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(l.pod.UID)}},
		})
		switch {
		case err == nil:
			r.RecordNormal(kruise.SidecarSetRecreatedReason, fmt.Sprintf("evicted pod %s/%s, which lacks the containers (%s)", l.pod.Namespace, l.pod.Name, l.reason))
			return nil
		case apierrors.IsTooManyRequests(err), apierrors.IsForbidden(err): // a budget holds this pod; the next may have another budget
			continue
		case client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err):
			return fmt.Errorf("evicting pod %s/%s, which lacks the containers: %w", l.pod.Namespace, l.pod.Name, err)
		}
		return nil
	}
	return nil
}
