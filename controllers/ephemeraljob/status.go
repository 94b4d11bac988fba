// SPDX-License-Identifier: Apache-2.0

package ephemeraljob

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/jobcondition"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// change is the status of a job as it is to be, and the events that go with it: they are
// recorded once it is written, so that each is recorded once.
type change struct {
	job    *kruise.EphemeralJob
	now    metav1.Time
	status kruise.EphemeralJobStatus
	events []func()
}

func (r *Reconciler) newChange(s *state) *change {
	c := &change{job: s.job, now: metav1.NewTime(s.now).Rfc3339Copy(), status: *s.job.Status.DeepCopy()}
	if c.status.StartTime == nil {
		c.status.StartTime = &c.now
		c.setCondition(kruise.EphemeralJobConditionInitialized, kruise.EphemeralJobInitializedReason, "")
	}
	return c
}

// setCondition sets a condition to True, and reports whether its reason is new.
func (c *change) setCondition(t v1beta1.JobConditionType, reason, message string) bool {
	return jobcondition.SetTrue(&c.status.Conditions, t, reason, message, c.now)
}

// removeCondition removes a condition, and reports whether it was there.
func (c *change) removeCondition(t v1beta1.JobConditionType) bool {
	return condition.RemoveConditions(&c.status, string(t))
}

func (r *Reconciler) addEvent(c *change, kind, reason, message string) {
	c.events = append(c.events, func() { r.Events.Event(c.job, kind, reason, message) })
}

// reportHeldAndDenied sets the conditions that show which pods policies hold or deny.
func (r *Reconciler) reportHeldAndDenied(c *change, h *placement.Hold, denied map[string]placement.Denial) {
	if h == nil {
		if c.removeCondition(kruise.EphemeralJobHeld) {
			r.addEvent(c, corev1.EventTypeNormal, kruise.EphemeralJobNotHeldReason, "No policy keeps containers from being added any more.")
		}
	} else if message := messageWithRule(h.Message, h.Rule); c.setCondition(kruise.EphemeralJobHeld, h.Reason, message) {
		r.addEvent(c, corev1.EventTypeWarning, string(kruise.EphemeralJobHeld), h.Reason+": "+message)
	}
	if len(denied) == 0 {
		c.removeCondition(kruise.EphemeralJobDenied)
		return
	}
	names := make([]string, 0, len(denied))
	for name := range denied {
		names = append(names, name)
	}
	slices.Sort(names)
	first := denied[names[0]]
	message := messageWithRule(first.Message, first.Rule)
	if n := len(names); n > 1 {
		message += fmt.Sprintf("; %d pods are denied: %s", n, strings.Join(names[:min(n, 5)], ", "))
		if n > 5 {
			message += ", …"
		}
	}
	if c.setCondition(kruise.EphemeralJobDenied, first.Reason, message) {
		r.addEvent(c, corev1.EventTypeWarning, string(kruise.EphemeralJobDenied), first.Reason+": "+message)
	}
}

func messageWithRule(message, rule string) string {
	if rule == "" {
		return message
	}
	return message + " (rule " + rule + ")"
}

// reportCreation reports whether all containers could be added. The phase does not change: a temporary
// refusal is retried, and the next reconcile counts a final one.
func (r *Reconciler) reportCreation(m *memory, c *change, err error) {
	if err == nil {
		m.failed = ""
		if is := jobcondition.Find(c.status.Conditions, kruise.EphemeralJobConditionFailed); is != nil && is.Reason == kruise.EphemeralJobCreateFailedReason && len(m.refused) == 0 {
			c.removeCondition(kruise.EphemeralJobConditionFailed)
		}
		return
	}
	c.setCondition(kruise.EphemeralJobConditionFailed, kruise.EphemeralJobCreateFailedReason, err.Error())
	if m.failed != err.Error() {
		m.failed = err.Error()
		r.addEvent(c, corev1.EventTypeWarning, kruise.EphemeralJobCreateFailedReason, err.Error())
	}
}

// summarizeProgress returns what the conditions of package kstatus say of the job.
func (c *change) summarizeProgress() kstatus.Summary {
	s := &c.status
	text := fmt.Sprintf("the containers of %d of %d pods have succeeded, those of %d have failed, and those of %d are running", s.Succeeded, s.Match, s.Failed, s.Running)
	if s.CompletionTime != nil {
		if s.Phase == kruise.EphemeralJobSucceeded {
			return kstatus.NewReady(string(kruise.EphemeralJobConditionSucceeded), text)
		}
		for _, t := range []v1beta1.JobConditionType{kruise.EphemeralJobConditionError, kruise.EphemeralJobConditionFailed} {
			if is := jobcondition.Find(s.Conditions, t); is != nil && is.Message != "" {
				return kstatus.NewStalled(string(t), is.Message)
			}
		}
		return kstatus.NewStalled(string(kruise.EphemeralJobConditionFailed), text)
	}
	for _, t := range []v1beta1.JobConditionType{
		kruise.EphemeralJobConditionError, kruise.EphemeralJobConditionFailed, kruise.EphemeralJobHeld, kruise.EphemeralJobDenied, kruise.EphemeralJobWaitingForNodes,
	} {
		if is := jobcondition.Find(s.Conditions, t); is != nil && is.Status == corev1.ConditionTrue {
			return kstatus.NewReconciling(string(t), is.Message)
		}
	}
	if c.job.Spec.Paused {
		return kstatus.NewReconciling(string(kruise.EphemeralJobPaused), text+"; spec.paused is true")
	}
	return kstatus.NewReconciling(v1beta1.ProgressingReason, text)
}

// updateStatus writes the status if it differs from the one that the job was read with, and records
// the events.
func (r *Reconciler) updateStatus(ctx context.Context, c *change) error {
	kstatus.SetConditions(&c.status, c.summarizeProgress(), c.job.Generation, c.now.Time)
	if !equality.Semantic.DeepEqual(c.job.Status, c.status) {
		changed := c.job.DeepCopy()
		changed.Status = c.status
		if err := r.Client.Status().Update(ctx, changed); err != nil {
			return fmt.Errorf("writing the status of EphemeralJob %s: %w", client.ObjectKeyFromObject(c.job), err)
		}
	}
	for _, record := range c.events {
		record()
	}
	return nil
}
