// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/engine/decision"
)

// reportUnreadable reports that a round could not read the state: by a condition that stays until a round can, and by an event for
// each new error. The conditions of package kstatus say so too. The rest of the status does not change.
func (r *Round) reportUnreadable(ctx context.Context, cause error) error {
	if text := OneLine(cause.Error()); r.memory.unreadable != text {
		r.memory.unreadable = text
		r.RecordWarning(failure.ConditionType, text)
	}
	changed, ok := r.Workload.DeepCopyObject().(client.Object)
	if !ok || !failure.SetCondition(r.c.typ.Status(changed), cause, r.Workload.GetGeneration(), r.Now) {
		return nil
	}
	err := r.WriteStatus(ctx, r.c.typ.Status(changed))
	if IsConflict(err) { // the next round reports it
		return nil
	}
	return err
}

// HoldCondition returns the condition UpdateHeld after a round, with the first reason why pods are held.
// It is nil if there is nothing new to report: the round did not evaluate the update, or nothing holds the
// update and nothing did before. held reports whether the condition was True before.
func (res Result) HoldCondition(held bool) *condition.Condition {
	if !res.Looked {
		return nil
	}
	top := res.TopHold()
	switch {
	case top != nil:
		message := fmt.Sprintf("%s (rule %s)", top.Message, top.Rule)
		if res.restartHeld != "" {
			message += " " + res.restartHeld
		}
		return &condition.Condition{Type: kruise.UpdateHeld, Status: metav1.ConditionTrue, Reason: top.Reason, Message: OneLine(message)}
	case held:
		return &condition.Condition{Type: kruise.UpdateHeld, Status: metav1.ConditionFalse, Reason: kruise.NotHeldReason, Message: "No policy holds the update."}
	}
	return nil
}

// Events records events of a workload.
type Events interface {
	RecordNormal(reason, message string)
	RecordWarning(reason, message string)
}

// ReportHold records an event for a new condition that HoldCondition returned. If the user
// requested the hold in the update strategy, the event is no warning.
func (res Result) ReportHold(to Events, c condition.Condition) {
	if c.Status != metav1.ConditionTrue {
		to.RecordNormal(kruise.NotHeldReason, "No policy holds the update any more.")
		return
	}
	record := to.RecordWarning
	if top := res.TopHold(); top != nil && byStrategy(*top) {
		record = to.RecordNormal
	}
	record(kruise.UpdateHeld, fmt.Sprintf("%s: %s", c.Reason, c.Message))
}

// byStrategy reports whether the user requested a hold in the update strategy.
func byStrategy(h decision.Hold) bool {
	return h.Rule == "rollout.plan.paused" || h.Rule == "rollout.plan.on-delete"
}
