// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// statusOfJob is IMG-05: the status of a job that has not ended yet, by its tally.
func (r *Reconciler) statusOfJob(job *kruise.ImagePullJob, t *tally, holds []points.Hold) kruise.ImagePullJobStatus {
	s := *job.Status.DeepCopy()
	now := metav1.NewTime(r.Now()).Rfc3339Copy()
	if s.StartTime == nil {
		s.StartTime = &now
	}
	s.Desired, s.Active, s.Succeeded, s.Failed = int32(t.Total), int32(t.Pulling), int32(t.Succeeded), int32(t.Nodes.Failed) //nolint:gosec // nodes
	s.FailedNodes = t.failed
	ended := t.Succeeded + t.Nodes.Failed
	late := r.timeToDeadline(job, s.StartTime) < 0
	switch {
	case !neverCompletes(job) && ended == t.Total:
		s.CompletionTime, s.Message = &now, kruise.ImagePullJobCompletedMessage
	case late:
		s.CompletionTime, s.Message = &now, kruise.ImagePullJobDeadlineExceededMessage
		s.Active, s.Failed = 0, int32(t.Total-t.Succeeded) //nolint:gosec // nodes
		s.FailedNodes = append(slices.Clone(t.failed), t.unended...)
	case ended == 0:
		s.Message = kruise.ImagePullJobNoProgressMessage
	default:
		s.Message = message.Shorten(fmt.Sprintf(kruise.ImagePullJobProgressMessage, float64(ended)*100/float64(t.Total)))
	}
	if s.CompletionTime != nil {
		holds = nil
	}
	slices.Sort(s.FailedNodes)
	if s.FailedNodes = slices.Compact(s.FailedNodes); len(s.FailedNodes) == 0 {
		s.FailedNodes = nil
	}
	r.setCondition(&s, kruise.ImagePullJobHeld, holdReason(holds))
	r.setCondition(&s, kruise.ImagePullJobDenied, denialReason(t.denied))
	r.setCondition(&s, kruise.ImagePullJobSecretMissing, secretFaultReason(t.faults))
	kstatus.SetConditions(&s, summarizeProgress(job, &s), job.Generation, r.Now())
	return s
}

// summarizeProgress returns what the conditions of package kstatus say of a job with a status.
func summarizeProgress(job *kruise.ImagePullJob, s *kruise.ImagePullJobStatus) kstatus.Summary {
	text := fmt.Sprintf("%d of %d nodes have pulled the image", s.Succeeded, s.Desired)
	held := meta.FindStatusCondition(s.Conditions, kruise.ImagePullJobHeld)
	switch {
	case held != nil && held.Reason == kruise.InvalidImageReason:
		return kstatus.NewStalled(held.Reason, held.Message)
	case s.CompletionTime != nil && s.Failed > 0:
		return kstatus.NewStalled(kruise.PullFailedReason, fmt.Sprintf("%s, and %d have failed: %s", text, s.Failed, s.Message))
	case s.CompletionTime != nil || neverCompletes(job) && s.Succeeded == s.Desired:
		return kstatus.NewReady(kruise.ImagesPulledReason, text)
	}
	for _, t := range []string{kruise.ImagePullJobHeld, kruise.ImagePullJobDenied} {
		if c := meta.FindStatusCondition(s.Conditions, t); c != nil {
			return kstatus.NewReconciling(t, c.Message)
		}
	}
	return kstatus.NewReconciling(kruise.ProgressingReason, text)
}

// timeToDeadline is how long a job may continue, 0 if it has no deadline and negative if the deadline has
// passed.
func (r *Reconciler) timeToDeadline(job *kruise.ImagePullJob, start *metav1.Time) time.Duration {
	deadline := job.Spec.CompletionPolicy.ActiveDeadlineSeconds
	if neverCompletes(job) || deadline == nil || start == nil {
		return 0
	}
	left := start.Add(time.Duration(*deadline) * time.Second).Sub(r.Now())
	if left == 0 {
		return -1
	}
	return left
}

// why is a policy's reason with its message.
type why struct{ reason, message string }

// holdReason returns the reason why a job is held: the first hold by rule, with holds of all nodes
// before holds of single nodes.
func holdReason(holds []points.Hold) *why {
	if len(holds) == 0 {
		return nil
	}
	first := slices.MinFunc(holds, func(a, b points.Hold) int {
		return slices.Compare([]string{a.Node, a.Rule, a.Message}, []string{b.Node, b.Rule, b.Message})
	})
	return newRuledReason(first.Reason, first.Message, first.Rule)
}

func denialReason(d *points.Denial) *why {
	if d == nil {
		return nil
	}
	return newRuledReason(d.Reason, d.Message, d.Rule)
}

func secretFaultReason(faults []string) *why {
	if len(faults) == 0 {
		return nil
	}
	return &why{kruise.PullSecretMissingReason, "Nodes pull without some of the pull secrets: " + strings.Join(faults, "; ") + "."}
}

func newRuledReason(reason, text, rule string) *why {
	if rule != "" {
		text += " (rule " + rule + ")"
	}
	return &why{reason, text}
}

// setCondition sets a condition of a status, or removes it.
func (r *Reconciler) setCondition(s *kruise.ImagePullJobStatus, kind string, w *why) {
	if w == nil {
		condition.RemoveConditions(s, kind)
		return
	}
	condition.SetCondition(s, condition.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: w.reason, Message: w.message}, 0, metav1.NewTime(r.Now()))
}

// patchStatus writes the status of a job if it has changed, and records events about new reasons of policies.
func (r *Reconciler) patchStatus(ctx context.Context, job *kruise.ImagePullJob, s kruise.ImagePullJobStatus) error {
	if equality.Semantic.DeepEqual(job.Status, s) {
		return nil
	}
	before := job.DeepCopy()
	before.Status.Desired = -1 // the schema requires the number, so it is in every patch
	was := job.Status
	job.Status = s
	if err := r.Client.Status().Patch(ctx, job, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of ImagePullJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	r.paced.recordWrite(job.UID, r.Now())
	for _, kind := range []string{kruise.ImagePullJobHeld, kruise.ImagePullJobDenied, kruise.ImagePullJobSecretMissing} {
		now, then := meta.FindStatusCondition(s.Conditions, kind), meta.FindStatusCondition(was.Conditions, kind)
		if now != nil && (then == nil || then.Reason != now.Reason) {
			r.Events.Event(job, corev1.EventTypeWarning, kind, now.Message)
		}
	}
	return nil
}
