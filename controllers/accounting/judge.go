// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// budgetDraft is a budget as it is to be written.
type budgetDraft struct {
	budget  *policy.PodUnavailableBudget // nil if there is none
	changed bool
	pods    []types.UID // recorded in it
}

func draftOf(budget *policy.PodUnavailableBudget) *budgetDraft {
	return &budgetDraft{budget: budget.DeepCopy()}
}

// decideTicket decides a request by a draft, and records the pod in the draft. sure is false if the
// answer must not be given from an older state of the budget.
func (l *Accountant) decideTicket(t *ticket, d *budgetDraft) (sure bool) {
	q := t.question
	in := l.buildInput(q, d.budget, l.recordedIn(d, q.Pod.UID))
	out, rec := l.decide(t.ctx, q.Asked.Subject(), in)
	out = clampOutput(in, out)
	t.answer = Result{Output: out, Record: rec}
	if d.budget == nil {
		return true
	}
	t.answer.Version = d.budget.ResourceVersion
	if out.Allow && out.Record != "" && !in.Request.DryRun {
		d.recordPod(q.Pod.Name, out, l.now())
		d.pods = append(d.pods, q.Pod.UID)
	}
	if rec.Outcome != decision.Decided {
		return true // the answer depends on no budget
	}
	// Until its first status is written, a budget requires no available pods.
	unset := in.Budget.Desired == 0 && in.Pod.Ready && in.Pod.Consistent && !in.Pod.NoProtect
	// An answer that relies on a record is not sure either: the record may have expired since.
	return out.Allow && !unset && out.Record == ""
}

// recordPod records a pod, in one list only. A record of the same second is not written
// again.
func (d *budgetDraft) recordPod(pod string, out protection.BudgetOutput, now time.Time) {
	s := &d.budget.Status
	at := metav1.NewTime(now.Truncate(time.Second))
	for _, l := range recordLists(s) {
		was, ok := (*l.records)[pod]
		switch {
		case l.name != out.Record && ok:
			delete(*l.records, pod)
			d.changed = true
		case l.name == out.Record && (!ok || !was.Equal(&at)):
			if *l.records == nil {
				*l.records = map[string]metav1.Time{}
			}
			(*l.records)[pod] = at
			d.changed = true
		}
	}
	if out.Take {
		// The pod was one of the available pods. Without this the controller would update the counts in a
		// write of its own.
		s.UnavailableAllowed, s.CurrentAvailable = max(s.UnavailableAllowed-1, 0), max(s.CurrentAvailable-1, 0)
		d.changed = true
	}
}

// clampOutput enforces the budget whatever a policy answers: a pod that counts uses up one allowed
// disruption, and is recorded.
func clampOutput(in protection.BudgetInput, out protection.BudgetOutput) protection.BudgetOutput {
	out.Record, out.Take = "", false
	if !out.Allow || !isCovered(in) {
		return out
	}
	if !isProtected(in) {
		// The pod does not count now. The API server asks again about a delete or an update if the pod changed
		// in between, such as when it became ready. It does not ask again about an eviction, so the record
		// prevents the pod from counting until it is gone.
		if in.Request.Operation == protection.Evict && !in.Object.Terminating {
			out.Record = protection.RecordDisrupted
		}
		return out
	}
	if in.Budget.Recorded != "" {
		out.Record = listOf(in)
		return out
	}
	if in.Budget.Allowed <= 0 && !out.Exempt {
		return protection.BudgetOutput{Reasons: []decision.Hold{{
			Rule: "clamp", Reason: "BudgetExceeded",
			Message: fmt.Sprintf("podunavailablebudget.policy.kruise.io %q is forbidden: %s. A policy would let the pod go, but %d pods are available of the %d that have to be.",
				in.Budget.Name, policy.BudgetUnavailableAllowedMessage, in.Budget.Current, in.Budget.Desired),
		}}}
	}
	out.Record, out.Take = listOf(in), true
	return out
}

// isProtected reports whether the pod counts, and the budget protects it from the
// operation.
func isProtected(in protection.BudgetInput) bool {
	return in.Pod.Ready && in.Pod.Consistent && isCovered(in)
}

// isCovered reports whether the budget protects the pod from the operation while the pod
// is available.
func isCovered(in protection.BudgetInput) bool {
	b := in.Budget
	if b == nil || in.Pod.NoProtect || b.Ignored || b.Desired <= 0 {
		return false
	}
	named := b.Operations
	if len(named) == 0 {
		named = []string{protection.Delete, protection.Update, protection.Evict}
	}
	op := in.Request.Operation
	return slices.Contains(named, op) || op == protection.Resize && in.ResizeIsUpdate && slices.Contains(named, protection.Update)
}

// listOf returns the list to record a pod in. A pod whose deletion was allowed stays in the list whose
// records last longer. A resize deletes nothing, so the budget does not wait for the pod to go.
func listOf(in protection.BudgetInput) string {
	op := in.Request.Operation
	if (op == protection.Update || op == protection.Resize) && in.Budget.Recorded != protection.RecordDisrupted {
		return protection.RecordUnavailable
	}
	return protection.RecordDisrupted
}
