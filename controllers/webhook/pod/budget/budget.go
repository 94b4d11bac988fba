// SPDX-License-Identifier: Apache-2.0

// Package budget asks PodUnavailableBudgets, and rules of users, whether a pod may become unavailable (PUB-02, PUB-03).
package budget

import (
	"context"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/accounting"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

// Options are what the step needs.
type Options struct {
	Ledger   *accounting.Accountant
	Recent   *protection.Recent
	Reporter *protection.Reporter
	// Deletes is gate PodUnavailableBudgetDeleteGate, Updates is gate PodUnavailableBudgetUpdateGate. The step runs without
	// them too: rules of users about pods do not depend on them.
	Deletes, Updates bool
}

// New makes the step.
func New(options Options) pod.ValidatingStep {
	return pod.ValidatingStep{
		Place: pod.Budget, Name: "asking the PodUnavailableBudget",
		Match: matchedRequests(options.Deletes, options.Updates), Validate: (&step{options}).validateRequest,
	}
}

type step struct{ Options }

func (b *step) validateRequest(ctx context.Context, r *pod.Request) admission.Response {
	q := accounting.Request{Asked: r.Asked, Recent: b.Recent.CountDeletes(r.Asked), Pod: r.Stored, Aside: b.isOutOfScope(r)}
	got, err := b.Ledger.DecideRequest(ctx, q)
	if err != nil {
		return b.refuseUnrecorded(r, err)
	}
	out := got.Output
	if !out.Allow {
		return b.Reporter.RefuseRequest(r.Asked, got.Record, out.Reasons)
	}
	b.Recent.RecordRemoval(r.Asked)
	if out.Exempt {
		return b.Reporter.ExemptRequest(r.Asked, got.Record, out.Reasons)
	}
	return b.Reporter.AllowRequest(got.Record, out.Reasons)
}

// isOutOfScope is true if no budget decides about the request. An update that takes the pod out of its budget needs no budget.
func (b *step) isOutOfScope(r *pod.Request) bool {
	if !r.IsUpdate() {
		return !b.Deletes
	}
	return !b.Updates || r.Harmless || availability.BudgetName(r.New) == ""
}

// refuseUnrecorded refuses a request that could not be recorded. It refuses an eviction with a status that clients retry, since any
// other status ends a drain.
func (b *step) refuseUnrecorded(r *pod.Request, err error) admission.Response {
	if r.Asked.Request.Operation != points.Evict {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("asking whether the pod may go: %w", err))
	}
	rec := decision.Record{Point: points.BudgetPoint().Name, Subject: r.Asked.Subject(), Outcome: decision.Failed, Error: err.Error()}
	return b.Reporter.RefuseRequest(r.Asked, rec, []decision.Hold{{
		Rule: "ledger", Reason: "BudgetUnavailable",
		Message: fmt.Sprintf("podunavailablebudget.policy.kruise.io %q is forbidden: time out, the budget could not be asked, so the pod stays (%v). Try again.", availability.BudgetName(r.Stored), err),
	}})
}
